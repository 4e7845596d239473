"""An S3-compatible server on loopback."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ACCESS = {
    "AWS_ACCESS_KEY_ID": "me",
    "AWS_SECRET_ACCESS_KEY": "mine",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A server that listens at an address, HOST:PORT."""

    address: str

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment in which it is found."""
        return ACCESS | {"AWS_ENDPOINT_URL": f"http://{self.address}"}

    def open(self) -> Any:
        """Its file system. Buckets are folders."""
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(
            access_key=ACCESS["AWS_ACCESS_KEY_ID"],
            secret_key=ACCESS["AWS_SECRET_ACCESS_KEY"],
            region=ACCESS["AWS_DEFAULT_REGION"],
            endpoint_override=self.address,
            scheme="http",
            allow_bucket_creation=True,
        )

    def make_bucket(self, name: str, files: Path | None = None) -> str:
        """A new bucket, with a copy of the files below a folder in `in`; returns its URI."""
        from pyarrow.fs import LocalFileSystem, copy_files

        store = self.open()
        store.create_dir(name)
        if files is not None:
            copy_files(str(files), f"{name}/in", LocalFileSystem(), store)
        return f"s3a://{name}"


@contextmanager
def run_object_store() -> Iterator[ObjectStore]:
    """A server for as long as the block lasts."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield ObjectStore(f"{host}:{port}")
    server.stop()
