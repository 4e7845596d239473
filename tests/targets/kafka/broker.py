"""Start and kill a single-node Apache Kafka on loopback.

    start 4            newest 4.x (newer coordinator); start 3: newest 3.9.x (older coordinator)
    kill 4             kill it without warning; the next start has the same data and the same port

Downloads go to $FENCEPOST_CACHE (default ~/.cache/fencepost), data to $FENCEPOST_RUN (default run/ in the cache).

The only line on stdout is the bootstrap address, printed once the coordinator answers for every partition of
__consumer_offsets. Starting what already runs prints its address again.
"""

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from string import Template

from tests.targets import probe
from tests.targets.process import (
    MissingDependencyError,
    ProcessFolder,
    StartError,
    cache_folder,
    free_ports,
    print_address,
    run_folder,
)

VERSIONS = {"4": "4.4.0", "3": "3.9.2"}
"""The one place where the broker versions are pinned."""

HERE = Path(__file__).parent
COPY_JARS = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
CLUSTER_ID = "ZmVuY2Vwb3N0LXRhcmdldA"
JVM_OPTIONS = ("-Xmx512m", "-Xms256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
START_TIMEOUT_S = 120
"""Seconds a broker may take to answer, on a busy machine."""
GROUPS = "abcde"
"""One group for each of the five partitions of __consumer_offsets: Java hashes a letter to its code."""


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
    """Fetch the jars of `version` and format one empty storage, once per machine; return the folder of both."""
    home = cache_folder() / f"kafka-{version}"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "jars").exists():
            fetch_jars(version, home / "jars.part")
            (home / "jars.part").rename(home / "jars")
        if not (home / "formatted").exists():
            shutil.rmtree(home / "formatted.part", ignore_errors=True)
            config = home / "format.properties"
            config.write_text(render_properties(home / "formatted.part", 9092, 9093))
            run_quietly([*java_command(home), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config)])
            (home / "formatted.part").rename(home / "formatted")
    return home


def fetch_jars(version: str, target: Path) -> None:
    """Have Maven put the broker's jars into `target`."""
    if shutil.which("mvn") is None:
        raise MissingDependencyError("mvn: not found; install Apache Maven, which fetches the broker")
    pom = ["-f", str(HERE / "pom.xml"), f"-Dkafka.version={version}"]
    try:
        run_quietly(["mvn", "-q", "-B", *pom, COPY_JARS, f"-DoutputDirectory={target}"])
    except StartError as error:
        raise MissingDependencyError(f"Kafka {version} cannot be fetched: {error}") from error


def java_command(home: Path) -> list[str]:
    """The Java command up to the class to run; HERE holds the configuration of the log."""
    return [find_java(), *JVM_OPTIONS, "-cp", f"{HERE}{os.pathsep}{home / 'jars' / '*'}"]


def render_properties(log_dir: Path, port: int, controller_port: int) -> str:
    """The broker's configuration."""
    template = Template((HERE / "server.properties").read_text())
    return template.substitute(log_dir=log_dir, port=port, controller_port=controller_port)


def prepare_storage(folder: ProcessFolder, home: Path, port: int | None) -> tuple[Path, int]:
    """Give a new broker its storage and ports, which it then keeps; return its configuration and its port."""
    ports = folder.path / "ports"
    if not ports.exists():
        folder.path.mkdir(parents=True, exist_ok=True)
        shutil.copytree(home / "formatted", folder.path / "data", dirs_exist_ok=True)
        free, controller = free_ports(2)
        ports.write_text(f"{port or free} {controller}")
    chosen, controller = map(int, ports.read_text().split())
    config = folder.path / "server.properties"
    config.write_text(render_properties(folder.path / "data", chosen, controller))
    return config, chosen


def start(version: str, folder: ProcessFolder, port: int | None) -> str:
    """Start the broker that lives in `folder`, unless it runs already, and return its address once it serves."""
    find_java()  # a missing Java is told before anything is downloaded
    home = install(version)
    config, chosen = prepare_storage(folder, home, port)
    process = folder.launch([*java_command(home), "kafka.Kafka", str(config)])
    folder.wait_until_serving(process, lambda: is_serving(chosen), START_TIMEOUT_S)
    return f"127.0.0.1:{chosen}"


def is_serving(port: int) -> bool:
    """Whether the broker answers ApiVersions and its coordinator has loaded every partition."""
    try:
        probe.api_versions(port)
        return all(
            probe.coordinator_error(port, group) == 0 and probe.heartbeat_error(port, group) == probe.UNKNOWN_MEMBER_ID
            for group in GROUPS
        )
    except OSError:
        return False


def main(arguments: list[str] | None = None) -> int:
    """`start KEY` or `kill KEY`; 0 on success, 1 if the start failed, 2 if Java, Maven or the download is missing."""
    parser = argparse.ArgumentParser(prog="broker", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("action", choices=["start", "kill"])
    parser.add_argument("key", choices=sorted(VERSIONS), help="which Kafka")
    parser.add_argument("--data", type=Path, help="the broker's folder (default: kafka-KEY in $FENCEPOST_RUN)")
    parser.add_argument("--port", type=int, help="port for a new broker (default: a free one)")
    parser.add_argument("--fresh", action="store_true", help="kill what lives in the folder and forget its data")
    given = parser.parse_args(arguments)
    folder = ProcessFolder((given.data or run_folder() / f"kafka-{given.key}").absolute())
    if given.action == "kill" or given.fresh:
        folder.kill()
    if given.fresh:
        shutil.rmtree(folder.path, ignore_errors=True)
    return print_address(lambda: start(VERSIONS[given.key], folder, given.port)) if given.action == "start" else 0


if __name__ == "__main__":
    sys.exit(main())
