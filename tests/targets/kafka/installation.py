"""Jars, storage and configuration of Apache Kafka, as its targets need them.

Downloads go to $FENCEPOST_CACHE (default ~/.cache/fencepost), and with them storages that are formatted and empty.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template

from tests.targets.process import MissingDependencyError, ProcessFolder, StartError, cache_folder

VERSIONS = {"4": "4.4.0", "3": "3.9.2", "3.4": "3.4.1", "2.8": "2.8.2"}
"""The one place where the broker versions are pinned."""

TOOLS_VERSION = "4.3.0"
"""The newest release whose command-line tools are published to Maven Central."""

HERE = Path(__file__).parent
COPY_JARS = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
CLUSTER_ID = "ZmVuY2Vwb3N0LXRhcmdldA"
JVM_OPTIONS = ("-Xmx512m", "-Xms256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
START_TIMEOUT_S = 120
"""Seconds a broker may take to answer, on a busy machine."""


def find_java() -> str:
    """The Java to run; JAVA_HOME comes before PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None:
        raise MissingDependencyError("java: not found; install a Java 17 or newer, or set JAVA_HOME")
    return found


def run_quietly(command: list[str]) -> None:
    """Run a preparing command quietly. Raises StartError with its output if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise StartError(f"{command[0]}: exit code {done.returncode}\n{done.stdout[-2000:]}")


def install(version: str) -> Path:
    """Fetch the jars of `version`, once per machine; return the folder that has them in `jars`."""
    return fetch_project(f"kafka-{version}", version, HERE / "pom.xml")


def install_tools() -> Path:
    """Fetch the jars of Kafka's command-line tools, once per machine; return the folder that has them in `jars`."""
    return fetch_project(f"kafka-tools-{TOOLS_VERSION}", TOOLS_VERSION, HERE / "tools.pom.xml")


def fetch_project(name: str, version: str, pom: Path) -> Path:
    """Fetch the jars that a Maven project asks for, once per machine; return the folder NAME that has them in `jars`.

    The version is given to the project as `jars.version`. Raises MissingDependencyError without Java or Maven.
    """
    find_java()  # a missing Java is told before anything is downloaded
    home = cache_folder() / name
    with _locked(home):
        if not (home / "jars").exists():
            fetch_jars(version, home / "jars.part", pom)
            (home / "jars.part").rename(home / "jars")
    return home


def format_storage(home: Path, name: str, template: str, *options: str, **values: object) -> Path:
    """An empty storage that Kafka has formatted, once per machine for each `name`; return its folder.

    `template` and `values` are as `render_properties` takes them; `options` are those of Kafka's command.
    """
    storage = home / name
    with _locked(home):
        if not storage.exists():
            part = home / f"{name}.part"
            shutil.rmtree(part, ignore_errors=True)
            config = home / f"{name}.properties"
            config.write_text(render_properties(template, log_dir=part, **values))
            command = [*java_command(home), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config)]
            run_quietly([*command, *options])
            part.rename(storage)
    return storage


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch_jars(version: str, target: Path, pom: Path) -> None:
    """Have Maven put the jars that a project asks for into `target`."""
    if shutil.which("mvn") is None:
        raise MissingDependencyError("mvn: not found; install Apache Maven, which fetches Kafka")
    project = ["-f", str(pom), f"-Djars.version={version}"]
    try:
        run_quietly(["mvn", "-q", "-B", *project, COPY_JARS, f"-DoutputDirectory={target}"])
    except StartError as error:
        raise MissingDependencyError(f"{pom.stem} {version} cannot be fetched: {error}") from error


def java_command(home: Path, *more: str) -> list[str]:
    """The Java command up to the class to run, with `more` options; HERE holds the configuration of the log."""
    return [find_java(), *JVM_OPTIONS, *more, "-cp", f"{HERE}{os.pathsep}{home / 'jars' / '*'}"]


def render_properties(template: str, **values: object) -> str:
    """The configuration of a broker: what all have in common, then the file beside this one called `template`."""
    text = "\n".join((HERE / name).read_text() for name in ("server.properties", template))
    return Template(text).substitute({name: str(value) for name, value in values.items()})


def launch_broker(home: Path, folder: ProcessFolder, config: str) -> "subprocess.Popen[bytes] | None":
    """Start a broker with this configuration in `folder`, unless one runs there."""
    file = folder.path / "server.properties"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(config)
    return folder.launch([*java_command(home), "kafka.Kafka", str(file)])


def kill_processes(folder: Path) -> None:
    """Kill every process that lives in `folder` or below it."""
    # A running broker removes folders of topics meanwhile, which `Path.rglob` takes for an error.
    for place in sorted(place for place, _, files in os.walk(folder) if "lock" in files):
        ProcessFolder(Path(place)).kill()
