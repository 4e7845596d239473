"""`fencepost replay`: the outcome of playing the trace of a failure again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.group import Group
from fencepost.adapters.serve.coordination import topic_id_of
from fencepost.conformance.cli import main
from fencepost.conformance.run.replay import NEVER_FAILED, judge_trace
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.trace_files import open_trace, write_trace
from tests.support.faulty_coordinators import (
    FORGIVING,
    SILENT_ON_HEARTBEAT,
    STRICT,
    EagerSyncCoordinator,
    install,
)
from tests.support.served_coordinator import serve_in_thread
from tests.targets.running import RunningTarget

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def save_failing_trace(requirement: str, folder: Path, coordinator: type[Coordinator], patch: Patch) -> Path:
    """Test a coordinator for a requirement that it breaks; the trace that shows it."""
    with patch.context() as only_now:
        install(only_now, coordinator)
        assert main(["test", "bundled", "--only", requirement, "--save", str(folder)]) == 1
    return min(folder.glob("*.jsonl"))


def record_passing_trace(requirement: str, folder: Path) -> Path:
    """The trace of a scenario in which all is well."""
    assert main(["test", "bundled", "--only", requirement, "--traces", str(folder)]) == 0
    return min(folder.glob("*.jsonl"))


NOTHING_FAILED = (3, f"INCONCLUSIVE: {NEVER_FAILED}")


def run_replay(trace: Path, target: str, capsys: Capture, *options: str) -> tuple[int, str]:
    """The exit code of a replay, and the last line that it prints."""
    capsys.readouterr()
    code = main(["replay", str(trace), target, *options])
    output = capsys.readouterr()
    return code, (output.out or output.err).splitlines()[-1]


def test_a_failure_is_still_there(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    trace = save_failing_trace("HB-04", tmp_path, FORGIVING, monkeypatch)
    install(monkeypatch, FORGIVING)
    assert run_replay(trace, "bundled", capsys) == (1, "STILL FAILS")
    assert main(["replay", str(trace), "bundled"]) == 1
    text = capsys.readouterr().out
    assert text.startswith("FAIL HB-04 MUST: ")
    assert f"trace         {trace}, event " in text
    assert "replayed      yes, it failed again" in text


def begin_with_the_second_generation(patch: Patch) -> None:
    """Have the first generation of a group be 2 (GEN-01)."""

    def begin_generation(group: Group, now: int) -> None:
        group.generation = max(1, group.generation)
        BEGIN_GENERATION(group, now)

    patch.setattr(Group, "begin_generation", begin_generation)


BEGIN_GENERATION = Group.begin_generation


def test_a_replay_is_about_the_requirement_that_the_trace_was_saved_for(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    begin_with_the_second_generation(monkeypatch)
    trace = save_failing_trace("HB-04", tmp_path, FORGIVING, monkeypatch)
    _, events = open_trace(trace)
    assert [event.body for event in events if event.api == "saved"] == [{"requirements": ["HB-04"]}]
    capsys.readouterr()
    install(monkeypatch, FORGIVING)
    assert main(["replay", str(trace), "bundled"]) == 1
    text = capsys.readouterr().out
    assert text.startswith("FAIL HB-04 MUST: ")
    assert text.endswith("\n\nViolated beside it: GEN-01\n\nSTILL FAILS\n")
    install(monkeypatch, STRICT)
    assert main(["replay", str(trace), "bundled"]) == 1
    text = capsys.readouterr().out
    assert text.startswith("FAIL HB-05 MUST: ")
    assert "\n\nViolated beside it: GEN-01\n\n" in text and text.endswith("\n\nDIFFERENT\n")


def test_nothing_is_fixed_while_anything_is_violated(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    with monkeypatch.context() as only_now:
        begin_with_the_second_generation(only_now)
        trace = save_failing_trace("HB-04", tmp_path, FORGIVING, only_now)
        capsys.readouterr()
        assert main(["replay", str(trace), "bundled"]) == 1
        text = capsys.readouterr().out
        assert text.startswith("FAIL GEN-01 MUST: ")
        assert text.endswith("\n\nNo longer violated: HB-04\n\nDIFFERENT\n")
        install(only_now, SILENT_ON_HEARTBEAT)
        assert main(["replay", str(trace), "bundled"]) == 1
        assert "No longer violated" not in capsys.readouterr().out
    assert run_replay(trace, "bundled", capsys) == (0, "FIXED")


def test_a_trace_that_does_not_say_what_it_was_saved_for_is_fixed_as_a_whole(
    tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    begin_with_the_second_generation(monkeypatch)
    trace = save_failing_trace("HB-04", tmp_path, FORGIVING, monkeypatch)
    header, events = open_trace(trace)
    write_trace(trace, header, [event for event in events if event.api != "saved"])
    assert run_replay(trace, "bundled", capsys) == (1, "STILL FAILS")


def test_a_failure_is_fixed(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    trace = save_failing_trace("HB-04", tmp_path, FORGIVING, monkeypatch)
    assert run_replay(trace, "bundled", capsys) == (0, "FIXED")


def test_another_failure_is_told_apart(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    trace = save_failing_trace("HB-04", tmp_path, FORGIVING, monkeypatch)
    install(monkeypatch, STRICT)
    assert run_replay(trace, "bundled", capsys) == (1, "DIFFERENT")


def test_silence_decides_nothing(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    trace = save_failing_trace("HB-04", tmp_path, FORGIVING, monkeypatch)
    install(monkeypatch, SILENT_ON_HEARTBEAT)
    code, line = run_replay(trace, "bundled", capsys)
    assert code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert line.startswith("INCONCLUSIVE: HB-04 at request ")
    assert line.endswith(" of the trace: no answer came this time")


def test_a_fixed_target_is_not_asked_to_answer_too_early(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    trace = save_failing_trace("SYNC-10", tmp_path, EagerSyncCoordinator, monkeypatch)
    assert run_replay(trace, "bundled", capsys) == (0, "FIXED")
    install(monkeypatch, EagerSyncCoordinator)
    assert run_replay(trace, "bundled", capsys) == (1, "STILL FAILS")


def test_a_schedule_that_leads_elsewhere_decides_nothing(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    trace = save_failing_trace("HB-04", tmp_path, FORGIVING, monkeypatch)
    # Here the members are refused, and their heartbeats are those of strangers.
    install(monkeypatch, Coordinator, min_session_timeout=59_000)
    code, line = run_replay(trace, "bundled", capsys)
    assert (code, line.partition(":")[0]) == (Error.UNKNOWN_TOPIC_OR_PARTITION, "INCONCLUSIVE")
    assert line.endswith("the schedule did not lead to the same state this time")


def test_a_trace_without_failure(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    trace = record_passing_trace("HB-05", tmp_path)
    assert run_replay(trace, "bundled", capsys) == NOTHING_FAILED
    install(monkeypatch, STRICT)
    assert run_replay(trace, "bundled", capsys) == (1, "DIFFERENT")
    install(monkeypatch, SILENT_ON_HEARTBEAT)
    assert run_replay(trace, "bundled", capsys)[0] == 3


@pytest.mark.parametrize("requirement", ["FAILOVER-02", "FAILOVER-17"])
def test_a_restart_is_replayed(requirement: str, tmp_path: Path, capsys: Capture) -> None:
    trace = record_passing_trace(requirement, tmp_path)
    assert any(event.api == "restart" for event in open_trace(trace)[1])
    assert run_replay(trace, "bundled", capsys) == NOTHING_FAILED


def test_a_replay_is_a_run_of_its_own_on_the_wire(tmp_path: Path, capsys: Capture) -> None:
    trace = record_passing_trace("JOIN-25", tmp_path)
    with serve_in_thread(
        Settings(min_session_timeout=500, initial_rebalance_delay=600, offsets_partitions=2)
    ) as bootstrap:
        assert run_replay(trace, f"kafka://{bootstrap}", capsys) == NOTHING_FAILED
        assert run_replay(trace, f"kafka://{bootstrap}", capsys) == NOTHING_FAILED


def test_topics_have_ids_of_now(tmp_path: Path, capsys: Capture) -> None:
    trace = record_passing_trace("COMMIT-18", tmp_path)
    header, events = open_trace(trace)
    ours = topic_id_of("fencepost")
    other = tmp_path / "other.jsonl"
    write_trace(other, header, [replace(one, body=with_ids(one.body, ours, "1" * 8 + ours[8:])) for one in events])
    assert ours not in other.read_text() and '"1111' in other.read_text()
    assert run_replay(other, "bundled", capsys) == NOTHING_FAILED


def with_ids(value: Any, then: str, now: str) -> Any:
    """A message with one id in the place of another."""
    if isinstance(value, dict):
        return {name: with_ids(each, then, now) for name, each in value.items()}
    if isinstance(value, list):
        return [with_ids(each, then, now) for each in value]
    return now if value == then else value


@pytest.mark.kafka4
def test_a_failure_is_not_kafkas(tmp_path: Path, kafka4: RunningTarget, monkeypatch: Patch, capsys: Capture) -> None:
    trace = save_failing_trace("HB-04", tmp_path, FORGIVING, monkeypatch)
    assert run_replay(trace, f"kafka://{kafka4.bootstrap}", capsys) == (0, "FIXED")


# --- what cannot be replayed


@pytest.mark.parametrize(
    ("requirement", "why"),
    [
        ("FAILOVER-02", "the trace restarts its target; say how with --profile"),
        ("FAILOVER-17", "the trace restarts its target with another max_group_size; use bundled"),
    ],
)
def test_a_restart_that_the_target_cannot_do(requirement: str, why: str, tmp_path: Path, capsys: Capture) -> None:
    trace, profile = record_passing_trace(requirement, tmp_path), tmp_path / "p.toml"
    profile.write_text('[target]\nstart = "true"\nkill = "true"\n' if "max" in why else "")
    with serve_in_thread(Settings(offsets_partitions=2)) as bootstrap:
        code, line = run_replay(trace, f"kafka://{bootstrap}", capsys, "--profile", str(profile))
    assert (code, line) == (2, f"fencepost: kafka://{bootstrap}: {why}")


def save_bundled_trace(path: Path, *events: Event) -> Path:
    """A trace of these events, seen at the bundled target."""
    header, _ = open_trace(record_passing_trace("HB-01", path.parent / "other"))
    write_trace(path, header, events)
    return path


def test_a_version_that_the_target_does_not_have(tmp_path: Path, capsys: Capture) -> None:
    body = {"group_id": "g", "topics": []}
    trace = save_bundled_trace(tmp_path / "t", Event(0, 0, 0, "", Kind.REQUEST, "OffsetFetch", 0, body))
    assert run_replay(trace, "bundled", capsys) == (
        2,
        "fencepost: bundled: the trace needs OffsetFetch v0, it offers versions 1 to 10",
    )


def test_a_trace_without_requests(tmp_path: Path, capsys: Capture) -> None:
    trace = save_bundled_trace(tmp_path / "t")
    line = f"fencepost: {trace}: holds no request, so there is nothing to replay"
    assert run_replay(trace, "bundled", capsys) == (2, line)


def test_a_request_that_does_not_fit_the_wire_format(tmp_path: Path, capsys: Capture) -> None:
    body = {"group_id": "g", "generation_id": 1 << 40, "member_id": "m", "group_instance_id": None}
    trace = save_bundled_trace(tmp_path / "t", Event(0, 0, 0, "", Kind.REQUEST, "Heartbeat", 4, body))
    code, line = run_replay(trace, "bundled", capsys)
    assert code == 2
    assert line.startswith(f"fencepost: {trace}: event 0: HeartbeatRequest v4 generation_id: ")


def join(sequence: int, begun: int, ended: int, member: str, generation: int = -1) -> tuple[Event, Event]:
    """A JoinGroup, sent and answered at these milliseconds: accepted as the only member of a generation, or asked to
    come back with an id."""
    known = {"session_timeout_ms": 1_500, "rebalance_timeout_ms": 4_000, "protocol_type": "consumer"}
    protocols = [{"name": "range", "metadata": b""}]
    is_accepted = generation > 0
    body = {"group_id": "g", "member_id": member * is_accepted, "group_instance_id": None, "protocols": protocols}
    request = Event(sequence, begun, 1, member, Kind.REQUEST, "JoinGroup", 5, body | known)
    members = [{"member_id": member, "metadata": b"", "group_instance_id": None}] * is_accepted
    told: dict[str, Any] = {"protocol_name": "range" * is_accepted, "leader": member * is_accepted, "members": members}
    error = Error.NONE if is_accepted else Error.MEMBER_ID_REQUIRED
    told |= {"throttle_time_ms": 0, "error_code": error, "generation_id": generation, "member_id": member}
    return request, replace(request, sequence=sequence + 1, time=ended, kind=Kind.RESPONSE, of=sequence, body=told)


def test_rules_are_known_where_a_trace_ends_with_several_explanations(tmp_path: Path) -> None:
    """The session of the first member ran out, before or after the second one came back with its id."""
    settings = Settings(min_session_timeout=300, initial_rebalance_delay=100)
    header = Header("test", Order.INTERVALS, "wall", settings, 1_500)
    joins = join(1, 0, 1, "E"), join(3, 1, 103, "E", 1), join(5, 104, 105, "G"), join(7, 106, 1_609, "G", 2)
    judged = judge_trace(tmp_path / "t", header, [event for pair in joins for event in pair])
    assert not judged.verdict.violations
    rules = {sequence: set(found) for sequence, found in judged.rules.items()}
    assert rules == {1: {"join.id-required"}, 3: {"join.pending"}, 5: {"join.id-required"}, 7: {"join.pending"}}
