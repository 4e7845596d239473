"""Start and kill three nodes of Apache Kafka 4.x on loopback, and move leadership between them.

    start [--node N]       all nodes, or one that was killed; prints the address of the first one once they serve, every
                           partition of __consumer_offsets has three copies, and the nodes lead them in turn
    kill [--node N]        kill all, or one, without warning; they keep their data and their ports
    nodes                  print "ID HOST:PORT" for each node
    leader GROUP           print the id of the node that coordinates the group
    move GROUP [--node N]  have node N (default: the next one) coordinate the group, while the old one stays up; print N
    move GROUP --kill      kill the node that coordinates the group, and start it again once another one has taken over;
                           print that one

Downloads go to $FENCEPOST_CACHE (default ~/.cache/fencepost), data to $FENCEPOST_RUN (default run/ in the cache).
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.targets import probe
from tests.targets.kafka.broker import GROUPS
from tests.targets.kafka.installation import (
    START_TIMEOUT_S,
    VERSIONS,
    format_storage,
    install,
    kill_processes,
    launch_broker,
    render_properties,
)
from tests.targets.kafka.leadership import (
    OFFSETS_TOPIC,
    LeadershipError,
    describe_partitions,
    is_settled,
    move_leadership,
    partition_of,
)
from tests.targets.process import ProcessFolder, StartError, chosen_ports, print_address, run_folder

NODES = (1, 2, 3)
FORMAT_PORTS = (9092, 9093, 9094, 9095, 9096, 9097)
"""Ports that are named when a storage is formatted, and not used."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster that lives in `folder`. `ports` are those of the brokers, then those of the controllers."""

    folder: Path
    ports: tuple[int, ...]

    def port(self, node: int) -> int:
        """The port at which clients reach the node."""
        return self.ports[node - 1]

    def process(self, node: int) -> ProcessFolder:
        """The process of the node."""
        return ProcessFolder(self.folder / f"node-{node}")

    def any_port(self) -> int:
        """The port of a node that is up. Raises LeadershipError if none is."""
        for node in NODES:
            if is_up(self.port(node)):
                return self.port(node)
        raise LeadershipError("no node is up; start the cluster")

    def leader_of(self, group: str) -> int:
        """The node that coordinates the group, as the nodes tell."""
        partitions = describe_partitions(self.any_port())
        if not partitions:
            raise LeadershipError(f"{OFFSETS_TOPIC} is not there; start the cluster")
        return partitions[partition_of(group, len(partitions))].leader

    def move(self, group: str, node: int | None) -> int:
        """Have `node`, else the next one, coordinate the group; return it once it does."""
        port = self.any_port()
        partitions = describe_partitions(port)
        partition = partition_of(group, len(partitions))
        leader = partitions[partition].leader
        target = node or leader % len(NODES) + 1
        if target != leader:
            move_leadership(port, partition, target)
        self.process(target).wait_until_serving(None, lambda: leads(self.port(target), group, target), START_TIMEOUT_S)
        return target


def move_by_kill(cluster: Cluster, group: str) -> int:
    """Kill the node that coordinates the group, and start it again once another does; return that one once the killed
    node has all copies."""
    old = cluster.leader_of(group)
    kill_processes(cluster.process(old).path)
    process = cluster.process(next(node for node in NODES if node != old))
    process.wait_until_serving(None, lambda: is_led_by_another(cluster, group, old), START_TIMEOUT_S)
    new = cluster.leader_of(group)
    start(cluster, (old,))
    process.wait_until_serving(None, lambda: is_complete(cluster.port(old)), START_TIMEOUT_S)
    return new


def is_led_by_another(cluster: Cluster, group: str, old: int) -> bool:
    """Whether another node than `old` knows itself as the group's coordinator, and has all that was acknowledged."""
    try:
        node = cluster.leader_of(group)
    except (LeadershipError, OSError):
        return False
    return node > 0 and node != old and leads(cluster.port(node), group, node)


def open_cluster(folder: Path) -> Cluster:
    """The cluster in `folder`, with the ports it has or gets."""
    return Cluster(folder, tuple(chosen_ports(folder, 2 * len(NODES))))


def node_values(node: int, ports: Sequence[int]) -> dict[str, object]:
    """What three-nodes.properties needs to know of a node."""
    controllers = ports[len(NODES) :]
    voters = ",".join(f"{voter}@127.0.0.1:{port}" for voter, port in zip(NODES, controllers, strict=True))
    return {"node": node, "port": ports[node - 1], "controller_port": controllers[node - 1], "voters": voters}


def start(cluster: Cluster, nodes: Sequence[int]) -> str:
    """Start these nodes, unless they run; return the first node's address once they serve."""
    home = install(VERSIONS["4"])
    launched = {}
    for node in nodes:
        template, name = "three-nodes.properties", f"formatted-{node}-of-{len(NODES)}"
        formatted = format_storage(home, name, template, **node_values(node, FORMAT_PORTS))
        process = cluster.process(node)
        data = process.path / "data"
        if not data.exists():
            shutil.copytree(formatted, data)
        config = render_properties(template, log_dir=data, **node_values(node, cluster.ports))
        launched[node] = launch_broker(home, process, config)
    serves = is_complete if nodes == NODES else is_up
    for node, broker in launched.items():
        is_serving = partial(serves, cluster.port(node))
        cluster.process(node).wait_until_serving(broker, is_serving, START_TIMEOUT_S)
    if nodes == NODES and any(launched.values()):
        spread_leaders(cluster)
    return f"127.0.0.1:{cluster.port(nodes[0])}"


def spread_leaders(cluster: Cluster) -> None:
    """Have the partitions of the offsets topic led by the nodes in turn, and wait until they are loaded."""
    for group in GROUPS:
        partition = partition_of(group, len(GROUPS))
        cluster.move(group, NODES[partition % len(NODES)])


def is_up(port: int) -> bool:
    """Whether the node answers ApiVersions."""
    try:
        return bool(probe.api_versions(port))
    except OSError:
        return False


def is_complete(port: int) -> bool:
    """Whether the node knows the offsets topic, with every partition led by somebody and copied to all nodes."""
    try:
        probe.coordinator_error(port, GROUPS[0])  # makes the offsets topic
        partitions = describe_partitions(port).values()
    except OSError:
        return False
    return bool(partitions) and all(state.leader > 0 and set(state.in_sync) == set(NODES) for state in partitions)


def leads(port: int, group: str, node: int) -> bool:
    """Whether the node knows itself as the group's coordinator and has all that its predecessor acknowledged."""
    try:
        partitions = describe_partitions(port)
        partition = partition_of(group, len(partitions))
        return (
            partitions[partition].leader == node
            and probe.heartbeat_error(port, group) == probe.UNKNOWN_MEMBER_ID
            and is_settled(port, partition)
        )
    except OSError:
        return False


def print_move(cluster: Cluster, group: str, node: int | None, *, kill: bool) -> int:
    """Move the group, or tell in one line why not."""
    try:
        print(move_by_kill(cluster, group) if kill else cluster.move(group, node), flush=True)
    except (LeadershipError, StartError, OSError) as error:
        print(f"fencepost target: {error}", file=sys.stderr)
        return 1
    return 0


def print_leader(cluster: Cluster, group: str) -> int:
    """Print the group's coordinator, or tell in one line why not."""
    try:
        print(cluster.leader_of(group), flush=True)
    except (LeadershipError, OSError) as error:
        print(f"fencepost target: {error}", file=sys.stderr)
        return 1
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say; 0 on success, 1 if it failed, 2 if Java, Maven or the download is missing."""
    parser = argparse.ArgumentParser(prog="cluster", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("action", choices=["start", "kill", "nodes", "leader", "move"])
    parser.add_argument("group", nargs="?", help="for leader and move")
    parser.add_argument("--node", type=int, choices=NODES, help="one node in place of all")
    parser.add_argument("--kill", action="store_true", help="for move: kill the node that coordinates the group")
    parser.add_argument("--data", type=Path, help="the cluster's folder (default: kafka-cluster in $FENCEPOST_RUN)")
    given = parser.parse_args(arguments)
    if (given.group is None) == (given.action in ("leader", "move")):
        parser.error(f"{given.action} {'needs' if given.group is None else 'takes no'} GROUP")
    folder = (given.data or run_folder() / "kafka-cluster").absolute()
    if given.action == "kill":
        kill_processes(folder / f"node-{given.node}" if given.node else folder)
        return 0
    cluster = open_cluster(folder)
    if given.action == "start":
        return print_address(lambda: start(cluster, (given.node,) if given.node else NODES))
    if given.action == "leader":
        return print_leader(cluster, given.group)
    if given.action == "move":
        return print_move(cluster, given.group, given.node, kill=given.kill)
    for node in NODES:
        print(node, f"127.0.0.1:{cluster.port(node)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
