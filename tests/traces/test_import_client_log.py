"""Logs of clients as traces: those of one run of five clients tell the story that the log of its coordinator tells."""

from pathlib import Path

import pytest

from fencepost.traces.classic.client_steps import HANDLERS
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.history.builder import CauseKind, GroupTimeline
from fencepost.traces.importers.broker_log import import_log
from fencepost.traces.importers.client_lines import CLIENTS
from fencepost.traces.judge.judge import judge
from tests.support.log_stories import DATA, group_of, tell

CLIENT_LOGS = [path for path in sorted(DATA.glob("*.log")) if path.name != "broker.log"]
NEAR_MS = 120
"""A client logs its JoinGroup earlier than the coordinator does, the first one before it is connected."""


def story(group: GroupTimeline) -> list[tuple[int | None, CauseKind, tuple[str, ...], str]]:
    """The rebalances of a group that ended in a generation with members."""
    ended = [each for each in group.rebalances if each.phase == "Stable"]
    return [(each.generation, each.cause.kind, each.cause.members, each.phase) for each in ended]


def test_five_clients_tell_the_story_of_their_coordinator(tmp_path: Path) -> None:
    theirs, own = tell(tmp_path, *CLIENT_LOGS), tell(tmp_path, DATA / "broker.log")
    assert (theirs.kind, own.kind) == ("client log", "log")
    mine, expected = group_of(theirs, "orders"), group_of(own, "orders")
    assert story(mine) == story(expected) and len(story(mine)) == 9
    for one, other in zip(mine.rebalances, expected.rebalances, strict=False):
        assert abs(one.duration(0) - other.duration(0)) < NEAR_MS
    assert {member.client for member in mine.past_members} == {"j28", "j44", "rd#consumer-1", None}


def test_a_client_that_tells_no_generation_tells_its_rebalances(tmp_path: Path) -> None:
    group = group_of(tell(tmp_path, DATA / "js.log", DATA / "js2.log"), "web")
    assert [each.cause.kind for each in group.rebalances] == [CauseKind.CAME, CauseKind.CAME, CauseKind.LEFT]
    assert {each.generation for each in group.rebalances} == {None}


def test_beside_the_coordinator_clients_only_add_what_it_cannot_know(tmp_path: Path) -> None:
    both, own = tell(tmp_path, *DATA.glob("*.log")), tell(tmp_path, DATA / "broker.log")
    one, other = group_of(both, "orders"), group_of(own, "orders")
    assert [each.duration(0) for each in one.rebalances] == [each.duration(0) for each in other.rebalances]
    (slow,) = {end.detail for each in one.rebalances for name, end in each.gone if name.startswith("rd-dea2")}
    assert "did not poll" in slow
    assert not any("did not poll" in end.detail for each in other.rebalances for _, end in each.gone)


@pytest.mark.parametrize("path", CLIENT_LOGS, ids=lambda path: path.stem)
def test_what_clients_log_accuses_nobody(path: Path, tmp_path: Path) -> None:
    told = import_log([path], tmp_path / "trace.jsonl")
    header, events = open_trace(tmp_path / "trace.jsonl")
    verdict = judge(header, list(events))
    assert (verdict.violations, told.unknown) == ((), 0) and told.events > 2


LINES = """
[Consumer clientId=c, groupId=g] Successfully joined group with generation 7 | settled generation=7
[Consumer instanceId=i, clientId=c, groupId=g] Member m-1 sending LeaveGroup request to coordinator b:1 (id: 1 rack: \
null) due to the consumer is being closed | leave member=m-1
[Consumer clientId=c, groupId=g] Attempt to heartbeat with Generation{generationId=5, memberId='m-1', \
protocol='range'} and group instance id Optional.empty failed due to UNKNOWN_MEMBER_ID, resetting generation | \
evicted error=UNKNOWN_MEMBER_ID
(Re-)joining group g | ask group=g
Successfully joined group g with generation 4 | settled generation=4
Joined group 'g' (generation 2) with member_id m-1 | joined generation=2
[INFO] joined, balancing group; group: g, member_id: m-1, instance_id: <nil>, generation: 3, balance_protocol: range, \
leader: true | joined generation=3
level=INFO msg="joined" group=g member_id=m-1 generation=3 leader=false | joined generation=3
{"level":"info","ts":"2026-11-28T15:25:13.223Z","msg":"synced","group":"g","assigned":"t[0]"} | synced group=g
rdkafka#consumer-1| [thrd:main]: Application maximum poll interval (6000ms) exceeded by 12ms | - -
"""


@pytest.mark.parametrize("row", LINES.strip().splitlines())
def test_a_line_of_a_client_tells_its_step(row: str, tmp_path: Path) -> None:
    text, _, told = row.rpartition(" | ")
    step, expected = told.split()
    stamp = "" if text.startswith("{") else "2026-11-28 15:25:13,223 "
    (tmp_path / "app.log").write_text(f"{stamp}{text}\n{stamp}[Consumer clientId=x, groupId=h] (Re-)joining group\n")
    import_log([tmp_path / "app.log"], tmp_path / "trace.jsonl")
    _, events = open_trace(tmp_path / "trace.jsonl")
    bodies = [event.body for event in events if event.api == "step" and event.body.get("group") == "g"]
    if step == "-":
        assert bodies == []  # the group is not named before
    else:
        assert [(each["step"], f"{name}={each[name]}") for each in bodies for name in [expected.split("=")[0]]] == [
            (step, expected)
        ]


def test_every_step_of_a_client_has_a_handler() -> None:
    assert {form.step for client in CLIENTS for form in client.forms} - {"-"} == HANDLERS.keys()
