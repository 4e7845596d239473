"""A Spark standalone cluster on loopback, a master and two workers: the same tables as on one machine."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.java import java_home
from fencepost.traces.pipeline.schema import EVENTS, INPUTS, QUARANTINE, TABLES, TRACES
from tests.support.altered_traces import altered_trace
from tests.support.corpus_tables import ingest_here, read_rows
from tests.targets.process import die_with_parent

SPARK = Path(pyspark.__file__).parent
MASTER, WORKER = (f"org.apache.spark.deploy.{name}" for name in ("master.Master", "worker.Worker"))
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
STORE = {
    "AWS_ACCESS_KEY_ID": "me",
    "AWS_SECRET_ACCESS_KEY": "mine",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
pytestmark = [pytest.mark.cluster, pytest.mark.extra("moto")]
LOOPBACK = (
    "spark.driver.host=127.0.0.1",
    "spark.driver.bindAddress=127.0.0.1",
    "spark.executor.memory=512m",
    f"spark.driver.extraJavaOptions={QUICK}",
    f"spark.executor.extraJavaOptions={QUICK}",
    "spark.sql.shuffle.partitions=2",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of its master."""
    folder = tmp_path_factory.mktemp("cluster")
    variables = {"JAVA_HOME": str(java_home(folder)), "SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": "127.0.0.1"}
    variables |= {"SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable}
    master = f"spark://127.0.0.1:{free_port()}"

    def start(name: str, *arguments: str) -> subprocess.Popen[str]:
        command = [str(SPARK / "bin" / "spark-class"), name, "--host", "127.0.0.1", "--webui-port", "0", *arguments]
        env = os.environ | variables
        return subprocess.Popen(
            command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent
        )

    with ExitStack() as stack:
        for arguments in (
            (MASTER, "--port", master.rpartition(":")[2]),
            *((WORKER, "--cores", "1", "--memory", "700m", "--work-dir", str(folder / str(n)), master) for n in (1, 2)),
        ):
            process = start(*arguments)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            assert process.stderr is not None
            stack.callback(process.stderr.close)
            ready = "I have been elected leader" if arguments[0] == MASTER else "Successfully registered"
            said = ""
            for line in process.stderr:
                said += line
                if ready in line:
                    break
            else:
                pytest.fail(said)
        yield master


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of a bucket on an S3-compatible server on loopback."""
    from moto.server import ThreadedMotoServer
    from pyarrow.fs import S3FileSystem

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (STORE | {"AWS_ENDPOINT_URL": f"http://{host}:{port}"}).items():
        monkeypatch.setenv(name, value)
    S3FileSystem(allow_bucket_creation=True, endpoint_override=f"{host}:{port}", scheme="http").create_dir("traces")
    yield "s3a://traces"
    server.stop()


def run_stages(cluster: str, folder: Path, place: str, corpus: str) -> None:
    """Ingest and judge on the cluster, with paths relative to `folder`."""
    stored = tuple(f"spark.executorEnv.{name}={os.environ[name]}" for name in os.environ if name.startswith("AWS_"))
    confs = [word for each in (*LOOPBACK, *stored) for word in ("--conf", each)]
    command = [sys.executable, "-m", "fencepost", "pipeline"]
    report = ["--json", f"{corpus}.json"]
    for stage in (["ingest", place, "--to", corpus, "--buckets", "2"], ["judge", corpus, *report]):
        whole = [*command, *stage, "--master", cluster, *confs]
        done = subprocess.run(whole, capture_output=True, text=True, cwd=folder)
        assert done.returncode in (0, 1, 3), done.stderr


def rows_of(corpus: Corpus) -> dict[str, list[str]]:
    """The rows of a corpus, without the names of traces, and the days and times of files."""
    unnamed = {EVENTS: slice(1, 25), QUARANTINE: slice(1, None), TRACES: slice(1, None), INPUTS: slice(3, None)}
    return {table: sorted(repr(row[part]) for row in read_rows(corpus, table)) for table, part in unnamed.items()}


def summarize(report: Path) -> object:
    """What a report says of requirements, and what it is about."""
    told = json.loads(report.read_text())
    results = [(each["id"], each["verdict"], each["checks"], len(each["failures"])) for each in told["requirements"]]
    return results, told["events"], told["schedules"], told["rules"], len(told["undecided"])


def test_a_cluster_does_what_one_machine_does(cluster: str, bucket: str, tmp_path: Path) -> None:
    from pyarrow.fs import LocalFileSystem, copy_files

    from fencepost.traces.pipeline.file_systems import open_file_system

    traces = tmp_path / "in"
    traces.mkdir()
    for seed in range(6):
        write_trace(traces / f"{seed}.jsonl", *altered_trace(seed))
    (traces / "0.jsonl").write_bytes((traces / "0.jsonl").read_bytes()[:-9])
    copy_files(str(traces), "traces/in", LocalFileSystem(), open_file_system(bucket)[0])
    # Paths are those of the driver; the workers have folders of their own.
    run_stages(cluster, tmp_path, "in", "c")
    run_stages(cluster, tmp_path, f"{bucket}/in", "s")
    command = [sys.executable, "-m", "fencepost", "judge", str(traces), "--json", str(tmp_path / "alone.json")]
    subprocess.run(command, capture_output=True)
    alone = Corpus.create(tmp_path / "alone", 2)
    ingest_here(alone, sorted(traces.iterdir()))
    for name in ("c", "s"):
        corpus = Corpus.open(tmp_path / name)
        assert all(Path(file).is_file() for table in TABLES for file in corpus.files(table))
        assert rows_of(corpus) == rows_of(alone)
        assert summarize(tmp_path / f"{name}.json") == summarize(tmp_path / "alone.json")
    assert any(row.quarantined for row in alone.inputs()) and rows_of(alone)[EVENTS]
