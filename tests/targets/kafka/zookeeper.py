"""A ZooKeeper alone on loopback, as Apache Kafka 2.8.2 brings it: `start` prints its address, `kill` kills it.

Data goes to $FENCEPOST_RUN; the next start has the same data and the same port.
"""

import argparse
import socket
import sys

from tests.targets.kafka.broker import start_zookeeper
from tests.targets.kafka.installation import START_TIMEOUT_S, VERSIONS, install
from tests.targets.process import ProcessFolder, chosen_ports, print_address, run_folder


def start(folder: ProcessFolder) -> str:
    """Start the ZooKeeper that lives in `folder`, unless it runs already, and return its address."""
    home = install(VERSIONS["2.8"])
    [port] = chosen_ports(folder.path, 1)
    start_zookeeper(home, folder, port)
    folder.wait_until_serving(None, lambda: is_serving(port), START_TIMEOUT_S)
    return f"127.0.0.1:{port}"


def is_serving(port: int) -> bool:
    """Whether the ZooKeeper answers the word `srvr` with its state: it listens before it serves."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(b"srvr")
            return connection.recv(4096).startswith(b"Zookeeper version")
    except OSError:
        return False


def main(arguments: list[str] | None = None) -> int:
    """`start` or `kill`; 0 on success, 1 if the start failed, 2 if Java, Maven or the download is missing."""
    parser = argparse.ArgumentParser(prog="zookeeper", description=__doc__)
    parser.add_argument("action", choices=["start", "kill"])
    options = parser.parse_args(arguments)
    folder = ProcessFolder(run_folder() / "zookeeper")
    if options.action == "start":
        return print_address(lambda: start(folder))
    folder.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
