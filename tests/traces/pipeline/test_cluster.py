"""A Spark standalone cluster on loopback, a master and two workers: the same tables as on one machine."""

import os
import random
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
from fencepost.traces.pipeline.schema import TABLES
from tests.support.random_client import random_trace
from tests.targets.process import die_with_parent

SPARK = Path(pyspark.__file__).parent
MASTER, WORKER = (f"org.apache.spark.deploy.{name}" for name in ("master.Master", "worker.Worker"))
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
pytestmark = pytest.mark.cluster
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


def test_a_cluster_does_what_one_machine_does(cluster: str, tmp_path: Path) -> None:
    for seed in range(6):
        write_trace(tmp_path / f"{seed}.jsonl", *random_trace(random.Random(seed), 20))
    confs = [word for each in LOOPBACK for word in ("--conf", each)]
    command = [sys.executable, "-m", "fencepost", "pipeline"]
    # Paths are those of the driver; the workers have folders of their own.
    for stage in (["ingest", ".", "--to", "c", "--buckets", "2"], ["judge", "c"]):
        whole = [*command, *stage, "--master", cluster, *confs]
        done = subprocess.run(whole, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode in (0, 3), done.stderr
    corpus = Corpus.open(tmp_path / "c")
    inputs = corpus.inputs()
    assert all(row.counts.is_balanced for row in inputs) and len(inputs) == 6
    assert all(Path(file).is_file() for name in TABLES for file in corpus.files(name))
    assert f"{sum(row.events for row in inputs)} events" in done.stdout and "Invariants, queried" in done.stdout
