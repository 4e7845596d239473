"""A Spark standalone cluster on loopback, a master and two workers: the same tables as on one machine."""

import json
import os
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from venv import EnvBuilder

import pyspark
import pytest

from fencepost.conformance.cli import main
from fencepost.traces.files.trace_files import write_trace
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.spark_session import java_home
from fencepost.traces.pipeline.tables import EVENTS, INPUTS, QUARANTINE, TABLES, TRACES
from tests.support.altered_traces import altered_trace
from tests.support.corpus_tables import ingest_here, read_rows
from tests.support.object_store import ObjectStore, run_object_store
from tests.targets.process import die_with_parent

SPARK = Path(pyspark.__file__).parent
MASTER, WORKER = (f"org.apache.spark.deploy.{name}" for name in ("master.Master", "worker.Worker"))
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
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
    variables |= {"SPARK_DAEMON_MEMORY": "256m"}
    master = f"spark://127.0.0.1:{free_port()}"

    def start(name: str, *arguments: str) -> subprocess.Popen[str]:
        command = [str(SPARK / "bin" / "spark-class"), name, "--host", "127.0.0.1", "--webui-port", "0", *arguments]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
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
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """An S3-compatible server on loopback."""
    with run_object_store() as running:
        for name, value in running.variables.items():
            monkeypatch.setenv(name, value)
        yield running


def run_stages(cluster: str, folder: Path, *stages: list[str]) -> None:
    """Run stages of the pipeline on the cluster, with paths relative to `folder`."""
    stored = tuple(f"spark.executorEnv.{name}={os.environ[name]}" for name in os.environ if name.startswith("AWS_"))
    confs = [word for each in (*LOOPBACK, *stored) for word in ("--conf", each)]
    command = [sys.executable, "-m", "fencepost", "pipeline"]
    for stage in stages:
        whole = [*command, *stage, "--master", cluster, *confs]
        done = subprocess.run(whole, capture_output=True, text=True, cwd=folder)
        assert done.returncode in (0, 1, 3), done.stderr


def rows_of(corpus: Corpus) -> dict[str, list[str]]:
    """The rows of a corpus, without the names of traces, and the days and times of files."""
    unnamed = {EVENTS: slice(1, 25), QUARANTINE: slice(1, None), TRACES: slice(1, None), INPUTS: slice(3, None)}
    return {table: sorted(repr(row[part]) for row in read_rows(corpus, table)) for table, part in unnamed.items()}


def summarize(report: Path) -> object:
    """What a report says of requirements and root causes, and what it is about."""
    told = json.loads(report.read_text())
    results = [
        [each["id"], each["verdict"], each["checks"], len(each["failures"]), each["causes"]]
        for each in told["requirements"]
    ]
    causes = [{key: value for key, value in each.items() if key != "trace"} for each in told["causes"]]
    return results, causes, told["events"], told["schedules"], told["rules"], len(told["undecided"])


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A folder with traces, one of which is cut."""
    traces = tmp_path / "in"
    traces.mkdir()
    for seed in range(6):
        write_trace(traces / f"{seed}.jsonl", *altered_trace(seed))
    (traces / "0.jsonl").write_bytes((traces / "0.jsonl").read_bytes()[:-9])
    return traces


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of this machine without a package."""
    folder = tmp_path_factory.mktemp("bare") / "python"
    EnvBuilder(symlinks=True).create(folder)
    python = folder / "bin" / "python"
    for module in ("fencepost", "pyarrow", "pandas"):
        env = {"PATH": os.environ["PATH"]}
        done = subprocess.run([python, "-c", f"import {module}"], env=env, capture_output=True, text=True)
        assert f"No module named '{module}'" in done.stderr
    return python


def pack_whole_environment(packages: Path, python: Path, output: Path) -> None:
    """An archive with an interpreter: `python`, with packages in its own folder for them."""
    with tarfile.open(packages) as archive:
        archive.extractall(next(python.parents[1].glob("lib/python*/site-packages")), filter="data")
    with tarfile.open(output, "w:gz", compresslevel=1) as out:
        out.add(python.parents[1], ".")


def check_same(corpus: Corpus, report: Path, traces: Path) -> None:
    """Compare a corpus and a report with what this machine makes of the traces."""
    alone = Corpus.create(report.parent / "alone", 2)
    ingest_here(alone, sorted(traces.iterdir()))
    assert any(row.quarantined for row in alone.inputs()) and rows_of(alone)[EVENTS]
    assert rows_of(corpus) == rows_of(alone)
    wanted = report.parent / "alone.json"
    command = [sys.executable, "-m", "fencepost", "judge", str(traces), "--json", str(wanted)]
    assert subprocess.run(command, capture_output=True).returncode in (1, 3)
    assert summarize(report) == summarize(wanted)
    assert json.loads(wanted.read_text())["causes"]


def test_a_corpus_in_a_shared_folder(cluster: str, store: ObjectStore, traces: Path, tmp_path: Path) -> None:
    """Paths are those of the driver; the workers have folders of their own. Traces are read where they are."""
    bucket = store.make_bucket("traces", traces)
    run_stages(cluster, tmp_path, ["ingest", f"{bucket}/in", "--to", "c", "--buckets", "2"])
    run_stages(cluster, tmp_path, ["judge", "c", "--json", "c.json"])
    corpus = Corpus.open(tmp_path / "c")
    assert all(Path(file).is_file() for table in TABLES for file in corpus.files(table))
    check_same(corpus, tmp_path / "c.json", traces)


def test_a_corpus_at_a_uri(cluster: str, store: ObjectStore, traces: Path, tmp_path: Path) -> None:
    """Nothing is in a folder that driver and workers share; traces are named by a path of the driver."""
    bucket = store.make_bucket("corpora")
    place = f"{bucket}/deep/corpus"
    run_stages(cluster, tmp_path, ["ingest", "in", "--to", place, "--buckets", "2"], ["compact", place])
    run_stages(cluster, tmp_path, ["judge", place, "--json", "u.json"])
    corpus = Corpus.open(place)
    assert all(file.startswith("s3://corpora/deep/") for table in TABLES for file in corpus.files(table))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in", "u.json"]
    check_same(corpus, tmp_path / "u.json", traces)


def test_workers_that_lack_fencepost(
    cluster: str, store: ObjectStore, traces: Path, bare_python: Path, tmp_path: Path
) -> None:
    """With packages for the Python of the workers, and with an environment that has its own."""
    place = f"{store.make_bucket('packed')}/corpus"
    assert main(["pipeline", "pack", "-o", str(tmp_path / "packages.tar.gz")]) == 0
    bare = ["--conf", f"spark.pyspark.python={bare_python}"]
    ingest = ["ingest", "in", "--to", place, "--buckets", "2"]
    run_stages(cluster, tmp_path, [*ingest, "--archives", "packages.tar.gz", *bare])
    pack_whole_environment(tmp_path / "packages.tar.gz", bare_python, tmp_path / "whole.tar.gz")
    run_stages(cluster, tmp_path, ["judge", place, "--json", "p.json", "--archives", "whole.tar.gz"])
    check_same(Corpus.open(place), tmp_path / "p.json", traces)
