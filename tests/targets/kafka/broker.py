"""Start and kill a single-node Apache Kafka on loopback.

    start 4            newest 4.x (newer coordinator); start 3: newest 3.9.x (older coordinator);
                       start 3.4: 3.4.1; start 2.8: 2.8.2, with a ZooKeeper beside it
    start 4 --setting group.max.size=1000
                       another value than that of server.properties
    kill 4             kill it without warning; the next start has the same data and the same port

Downloads go to $FENCEPOST_CACHE (default ~/.cache/fencepost), data to $FENCEPOST_RUN (default run/ in the cache).

The only line on stdout is the bootstrap address, printed once the coordinator answers for every partition of
__consumer_offsets. Starting what already runs prints its address again.
"""

import argparse
import shutil
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template

from tests.targets import probe
from tests.targets.kafka.installation import (
    HERE,
    START_TIMEOUT_S,
    VERSIONS,
    format_storage,
    install,
    java_command,
    kill_processes,
    launch_broker,
    render_properties,
)
from tests.targets.process import ProcessFolder, StartError, chosen_ports, print_address, run_folder

GROUPS = "abcde"
"""One group for each of the five partitions of __consumer_offsets: Java hashes a letter to its code."""
ATTEMPTS = 3
"""How often a broker is started that ZooKeeper refuses while the session of the killed one lives."""


def start(key: str, folder: ProcessFolder, port: int | None, settings: Sequence[str] = ()) -> str:
    """Start the broker that lives in `folder`, unless it runs already, and return its address once it serves."""
    home = install(VERSIONS[key])
    begin = start_with_zookeeper if key == "2.8" else start_alone
    return begin(home, folder, port, "".join(f"{setting}\n" for setting in settings))


def start_alone(home: Path, folder: ProcessFolder, port: int | None, settings: str) -> str:
    """Start a broker that is its own controller, and return its address once it serves."""
    formatted = format_storage(home, "formatted", "one-node.properties", port=9092, controller_port=9093)
    chosen, controller = chosen_ports(folder.path, 2, port)
    data = folder.path / "data"
    if not data.exists():
        shutil.copytree(formatted, data)
    config = render_properties("one-node.properties", log_dir=data, port=chosen, controller_port=controller) + settings
    folder.wait_until_serving(launch_broker(home, folder, config), lambda: is_serving(chosen), START_TIMEOUT_S)
    return f"127.0.0.1:{chosen}"


def start_with_zookeeper(home: Path, folder: ProcessFolder, port: int | None, settings: str) -> str:
    """Start ZooKeeper and a broker that needs it, and return the broker's address once it serves."""
    chosen, zookeeper = chosen_ports(folder.path, 2, port)
    start_zookeeper(home, ProcessFolder(folder.path / "zookeeper"), zookeeper)
    places = {"log_dir": folder.path / "data", "port": chosen, "zookeeper_port": zookeeper}
    config = render_properties("zookeeper-node.properties", **places) + settings
    for attempt in range(1, ATTEMPTS + 1):
        process = launch_broker(home, folder, config)
        try:
            folder.wait_until_serving(process, lambda: is_serving(chosen), START_TIMEOUT_S)
            break
        except StartError:
            if attempt == ATTEMPTS or process is None or process.poll() is None:
                raise
    return f"127.0.0.1:{chosen}"


def start_zookeeper(home: Path, folder: ProcessFolder, port: int) -> None:
    """Start the ZooKeeper that lives in `folder`, unless it runs already; return once it takes connections."""
    folder.path.mkdir(parents=True, exist_ok=True)
    config = folder.path / "zookeeper.properties"
    template = Template((HERE / "zookeeper.properties").read_text())
    config.write_text(template.substitute(data_dir=folder.path / "data", port=port))
    main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    process = folder.launch([*java_command(home, "-Xms32m", "-Xmx128m"), main_class, str(config)])
    folder.wait_until_serving(process, lambda: is_listening(port), START_TIMEOUT_S)


def is_listening(port: int) -> bool:
    """Whether somebody takes connections on this port."""
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


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
    parser.add_argument("--setting", metavar="NAME=VALUE", action="append", default=[], help="for a new broker")
    given = parser.parse_args(arguments)
    folder = ProcessFolder((given.data or run_folder() / f"kafka-{given.key}").absolute())
    if given.action == "kill" or given.fresh:
        kill_processes(folder.path)
    if given.fresh:
        shutil.rmtree(folder.path, ignore_errors=True)
    if given.action == "kill":
        return 0
    return print_address(lambda: start(given.key, folder, given.port, given.setting))


if __name__ == "__main__":
    sys.exit(main())
