"""A packed environment: Fencepost and what its workers import, in one archive that Spark hands to every executor."""

import os
import re
import tarfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

import fencepost
from fencepost.traces.pipeline.errors import PipelineError

WORKER_PACKAGES = ("pyarrow", "pandas", "protobuf", "hypothesis", "networkx", "pytest", "confluent-kafka")
"""What workers import beside Fencepost and Spark, as far as it is installed. The driver alone needs Java, the log of
Delta tables and z3."""
PACKAGES_MARK = "fencepost-packages"
"""The first member of an archive that has packages, and no interpreter."""
ENVIRONMENT = "environment"
"""The name under which executors see an archive."""


def pack_environment(output: Path) -> int:
    """Write Fencepost and its workers' packages, as they are installed here, to a new archive (.tar.gz), and return its
    size in bytes. Raises `OSError`."""
    with tarfile.open(output, "x:gz", compresslevel=1) as out:
        out.addfile(tarfile.TarInfo(PACKAGES_MARK))
        for name, path in sorted((Path("fencepost", each), path) for each, path in package_files()):
            out.add(os.path.realpath(path), name, recursive=False)
        for package in installed_closure(WORKER_PACKAGES):
            for file in metadata.distribution(package).files or ():
                if ".." not in file.parts and "__pycache__" not in file.parts:
                    out.add(os.path.realpath(file.locate()), str(file), recursive=False)
    return output.stat().st_size


def package_files() -> Iterator[tuple[str, str]]:
    """Yield the files of Fencepost by their names in the package."""
    for root in fencepost.__path__:
        for folder, _, names in os.walk(root, followlinks=True):
            for name in names:
                path = os.path.join(folder, name)
                if "__pycache__" not in path:
                    yield os.path.relpath(path, root), path


def installed_closure(names: tuple[str, ...]) -> list[str]:
    """The distributions of these names that are installed here, with all that they require."""
    found: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            requirements = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        found[name] = None
        wanted = (re.match(r"[\w.-]+", each) for each in requirements if "extra ==" not in each)
        waiting += (each[0] for each in wanted if each is not None)
    return sorted(found)


def archive_settings(archive: Path, master: str) -> Mapping[str, str]:
    """Spark's settings for executors that run with a packed environment: one with packages alone goes with the Python
    of the executors, one with an interpreter (of conda-pack, for example) brings its own.

    Raises `PipelineError`.
    """
    if master.startswith("local"):
        raise PipelineError("--archives is for the workers of a cluster, which --master names")
    try:
        with tarfile.open(archive) as opened:
            first = opened.next()
    except (OSError, tarfile.TarError) as error:
        raise PipelineError(f"{archive}: no archive can be read there: {error}") from None
    handed = f"{archive.resolve()}#{ENVIRONMENT}"
    settings = {"spark.yarn.dist.archives" if master.startswith("yarn") else "spark.archives": handed}
    if first is not None and first.name == PACKAGES_MARK:
        return settings | {"spark.pyspark.python": "python3", "spark.executorEnv.PYTHONPATH": f"./{ENVIRONMENT}"}
    return settings | {
        "spark.pyspark.python": f"./{ENVIRONMENT}/bin/python",
        "spark.executorEnv.PYTHONPATH": "",
    }
