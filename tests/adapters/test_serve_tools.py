"""Kafka's own `kafka-consumer-groups.sh` on groups of `fencepost serve`; its columns in the report on traces."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost.conformance.reports.incident import MEMBER_COLUMNS, OFFSET_COLUMNS, STATE_COLUMNS
from tests.support.real_clients import TOPIC, RealClientGroup, produce
from tests.support.served_coordinator import serve_in_thread
from tests.targets.kafka.installation import VERSIONS, install, install_tools, java_command
from tests.targets.process import MissingDependencyError

TOOL_TIMEOUT_S = 120
"""Seconds that the tool may take on a busy machine; alone it takes three."""
GROUP = "billing"


class GroupTool:
    """The class behind `kafka-consumer-groups.sh`, on one cluster."""

    def __init__(self, home: Path, name: str, bootstrap: str) -> None:
        patience = str(1_000 * TOOL_TIMEOUT_S // 2)  # its own is 5 s
        self.command = [*java_command(home), name, "--bootstrap-server", bootstrap, "--timeout", patience]

    def rows(self, *arguments: str) -> list[list[str]]:
        """The words of each line that the tool prints, without empty lines."""
        done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, timeout=TOOL_TIMEOUT_S)
        assert done.returncode == 0, done.stdout + done.stderr
        return [line.split() for line in done.stdout.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A server with one member that has consumed and committed."""
    with serve_in_thread() as address:
        wanted = produce(address, range(40))
        room = RealClientGroup(address, GROUP)
        room.add_member("confluent-kafka")
        room.wait_until(lambda: room.is_fully_assigned() and room.has_consumed(wanted))
        room.remove_member(room.members[0])  # it commits
        member = room.add_member("confluent-kafka")
        room.wait_until(room.is_fully_assigned)
        yield address
        room.remove_member(member)


@pytest.fixture(
    scope="module",
    params=[pytest.param("4", marks=pytest.mark.kafka4), pytest.param("3.4", marks=pytest.mark.kafka34)],
)
def tool(request: pytest.FixtureRequest, bootstrap: str) -> GroupTool:
    """The tool of the newest release that is published with it, and that of an older one."""
    try:
        if request.param == "4":
            return GroupTool(install_tools(), "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", bootstrap)
        return GroupTool(install(VERSIONS["3.4"]), "kafka.admin.ConsumerGroupCommand", bootstrap)
    except MissingDependencyError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


def test_groups_are_listed(tool: GroupTool) -> None:
    assert tool.rows("--list") == [[GROUP]]
    assert tool.rows("--list", "--state") == [["GROUP", "STATE"], [GROUP, "Stable"]]


def test_offsets_are_described_with_lag_and_owner(tool: GroupTool) -> None:
    head, *rows = tool.rows("--describe", "--group", GROUP)
    assert head == ["GROUP", *OFFSET_COLUMNS, "HOST", "CLIENT-ID"]
    assert {(row[0], row[1], row[2]) for row in rows} == {(GROUP, TOPIC, str(number)) for number in range(4)}
    assert all(row[5] == "0" and row[3] == row[4] for row in rows)  # everything is consumed and committed
    (owner,) = {row[6] for row in rows}
    assert owner.startswith("rdkafka-")
    assert tool.rows("--describe", "--all-groups") == [head, *rows]


def test_the_state_is_described(tool: GroupTool) -> None:
    head, row = tool.rows("--describe", "--group", GROUP, "--state")
    assert head == ["GROUP", "COORDINATOR", "(ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    assert [row[0], *row[-3:]] == [GROUP, "range", "Stable", "1"]
    assert set(STATE_COLUMNS) >= {"GROUP", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"}


def test_members_are_described_with_their_partitions(tool: GroupTool) -> None:
    head, row = tool.rows("--describe", "--group", GROUP, "--members")
    assert head == ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    assert [row[0], *row[2:]] == [GROUP, "/127.0.0.1", "rdkafka", "4"]
    assert {"CONSUMER-ID", "#PARTITIONS"} <= set(MEMBER_COLUMNS)
    verbose = tool.rows("--describe", "--group", GROUP, "--members", "--verbose")[1]
    assert any("0,1,2,3" in word for word in verbose)
