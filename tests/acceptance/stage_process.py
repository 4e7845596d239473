"""Stages of the pipeline as processes that can be killed at any moment, and started again at little cost.

Each place in which stages run has a Java process that outlives them. So a stage begins in a second, and a kill comes
while it works and not while Java starts. What a killed stage began in Java goes on until the next stage begins there,
as executors of a cluster go on when they lose their driver; or the Java process is killed with it.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from fencepost.traces.pipeline import spark_session
from fencepost.traces.pipeline.spark_session import java_home
from tests.acceptance import crash_recovery

JAVA = {
    "spark.driver.memory": "800m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "OFF",
}
QUICK = {"spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false"}
"""Settings with which little data is worked on sooner."""
FILE_EVENTS = frozenset(
    ("open", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir", "shutil.rmtree")
)
"""What Python tells of work with files, as `sys.addaudithook` calls it."""


class StagePlace:
    """Where stages run, one at a time: with a Java process, which is started when a stage needs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.gateway: Any = None
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(["tests.acceptance.stage_process"])

    def start(self, name: str, traces: Path, to: Path, kill_at: int = 0) -> ForkServerProcess:
        """Start a stage; it kills itself at the file event with the number `kill_at` below `to`."""
        if self.gateway is None:
            conf = SparkConf(loadDefaults=False).setAll(list(JAVA.items()))
            with spark_session.set_environment({"JAVA_HOME": str(java_home(self.folder / "java"))}):
                self.gateway = launch_gateway(conf, {"stdout": DEVNULL, "stderr": DEVNULL})  # type: ignore[no-untyped-call]
        parameters = self.gateway.gateway_parameters
        java = {"PYSPARK_GATEWAY_PORT": str(parameters.port), "PYSPARK_GATEWAY_SECRET": parameters.auth_token}
        arguments = (name, traces, to, java, kill_at, self.events_file, self.output_file)
        process = self.processes.Process(target=run_stage, args=arguments)
        process.start()
        return process

    @property
    def events_file(self) -> Path:
        """Has the number of file events of the last stage that came to its end."""
        return self.folder / "events"

    @property
    def output_file(self) -> Path:
        """Has what the last stage printed."""
        return self.folder / "output"

    def kill_java(self) -> None:
        """Kill the Java process, if it runs."""
        if self.gateway is not None:
            self.gateway.proc.kill()
            self.gateway.proc.wait()
            self.gateway = None


@contextmanager
def stage_place(folder: Path) -> Iterator[StagePlace]:
    """A place for stages, for as long as the block lasts."""
    place = StagePlace(folder)
    try:
        yield place
    finally:
        place.kill_java()


def run_stage(
    name: str, traces: Path, to: Path, java: dict[str, str], kill_at: int, events_file: Path, output_file: Path
) -> None:
    """Run a stage in this process."""
    output = os.open(output_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    os.environ.update(java)
    end_left_session()
    spark_session.stop_spark = lambda spark: spark.stop()  # and leave Java to the next stage
    count = 0

    def count_events(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event in FILE_EVENTS and str(arguments[0]).startswith(str(to)):
            count += 1
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count_events)
    crash_recovery.MASTER = "local[1]"  # two stages share the cores
    crash_recovery.SPARK_CONFIG.update(QUICK)
    crash_recovery.STAGES[name].run(traces, to)
    events_file.write_text(str(count))


def end_left_session() -> None:
    """End the Spark session that a killed stage left in the Java process."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    with suppress(Py4JError):  # there is none
        gateway.jvm.org.apache.spark.SparkContext.getOrCreate().stop()
    gateway.close()
