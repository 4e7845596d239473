"""Logs of real brokers as traces, and the verdicts on them."""

import gzip
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.traces.classic.log_steps import STEP_HANDLERS
from fencepost.traces.events import Event, Header, Kind
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.importers.broker_log import import_log
from fencepost.traces.importers.coordinator_lines import COORDINATORS
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import CheckStatus, TraceVerdict

DATA = Path(__file__).parent / "data"
LOGS = [DATA / "kafka-3.log", DATA / "kafka-4.log"]
TESTED_REQUIREMENTS = {"GEN-02", "GEN-03", "GEN-05", "GEN-06", "GEN-20", "SYNC-04"}


def import_trace(folder: Path, *paths: Path) -> tuple[Header, list[Event]]:
    import_log(paths, folder / "trace.jsonl")
    header, events = open_trace(folder / "trace.jsonl")
    return header, list(events)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_a_real_log_is_read_whole_and_nobody_is_blamed(path: Path, tmp_path: Path) -> None:
    told = import_log([path], tmp_path / "trace.jsonl")
    assert (told.unknown, told.lines) == (0, len(path.read_text().splitlines()))
    header, events = open_trace(tmp_path / "trace.jsonl")
    seen = list(events)
    steps = Counter(event.body["step"] for event in seen if event.api == "step")
    assert {"prepare", "complete", "empty", "publish", "issue", "register", "replace", "unregister"} <= steps.keys()
    assert seen[0].api == "unknown" and {event.kind for event in seen} == {Kind.INTERNAL}
    verdict = judge(header, seen)
    assert (verdict.violations, verdict.inconclusive) == ((), ())
    assert {(mark.requirement, mark.status) for mark in verdict.check_results} == {
        (id, CheckStatus.PASS) for id in TESTED_REQUIREMENTS
    }


def test_what_a_line_says_and_no_more(tmp_path: Path) -> None:
    _, events = import_trace(tmp_path, LOGS[1])
    steps = [event for event in events if event.body.get("group") == "demo-4"]
    complete = next(event for event in steps if event.body["step"] == "complete")
    publish = next(event for event in steps if event.body["step"] == "publish")
    place = {"file": 0, "line": complete.body["line"]}
    assert complete.body == {"step": "complete", "group": "demo-4", "generation": 1, "count": 3, **place}
    assert publish.body["member"].startswith("rdkafka-") and publish.time - complete.time == 16


@pytest.mark.parametrize("layout", ["[{time}] INFO {text} (kafka.coordinator.group.GroupCoordinator)", "{time} {text}"])
def test_layouts(layout: str, tmp_path: Path) -> None:
    text = "[GroupCoordinator 7]: Stabilized group g generation 3 (__consumer_offsets-4) with 2 members"
    (tmp_path / "server.log").write_text(layout.format(time="2026-11-22 03:56:48,052", text=text) + "\n")
    _, events = import_trace(tmp_path, tmp_path / "server.log")
    assert [(event.body.get("group"), event.body.get("generation")) for event in events[1:]] == [("g", 3)]


def test_several_files_are_put_in_order_by_time(tmp_path: Path) -> None:
    rows = LOGS[0].read_text().splitlines(keepends=True)
    (tmp_path / "late.log").write_text("".join(rows[40:]))
    with gzip.open(tmp_path / "early.log.gz", "wt") as early:
        early.writelines(rows[:40])
    _, whole = import_trace(tmp_path, LOGS[0])
    _, pieces = import_trace(tmp_path, tmp_path / "late.log", tmp_path / "early.log.gz")
    assert [(each.time, each.api, each.body.get("step")) for each in pieces] == [
        (each.time, each.api, each.body.get("step")) for each in whole
    ]


def test_a_line_that_is_of_no_known_kind_is_counted(tmp_path: Path) -> None:
    rows = LOGS[0].read_text() + "2026-11-22 05:00:00,000 [GroupCoordinator 1]: Something new\n"
    (tmp_path / "server.log").write_text(rows + "no time [GroupCoordinator 1]: Starting up.\n\0\xff\n")
    assert import_log([tmp_path / "server.log"], tmp_path / "trace.jsonl").unknown == 1


@pytest.mark.parametrize("content", [b"", b"\0\xff\xfe" * 1000, b"2026-11-22 05:00:00,000 INFO all is well\n"])
def test_what_is_no_log_of_a_coordinator(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "server.log").write_bytes(content)
    with pytest.raises(TraceError, match="no line of a group coordinator"):
        import_log([tmp_path / "server.log"], tmp_path / "trace.jsonl")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(LOGS[0].read_bytes())[:-20])
    for name in ("a.log.gz", "missing.log"):
        with pytest.raises(TraceError, match="cannot be read"):
            import_log([tmp_path / name], tmp_path / "trace.jsonl")


# --- the judge


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Header, list[Event]]:
    """The steps of one group of a real broker."""
    header, events = import_trace(tmp_path_factory.mktemp("demo"), LOGS[1])
    return header, [event for event in events if event.api == "unknown" or event.body.get("group") == "demo-4"]


def alter_step(events: list[Event], step: str, nth: int, **fields: Any) -> list[Event]:
    """The events with one of them told otherwise, or left out."""
    place = [number for number, event in enumerate(events) if event.body.get("step") == step][nth]
    event = events[place]
    middle = [replace(event, body={**event.body, **fields})] if fields else []
    return [*events[:place], *middle, *events[place + 1 :]]


def violated_guards(verdict: TraceVerdict) -> list[tuple[str, str]]:
    return [(fault.requirements[0], fault.guard) for fault in verdict.violations]


@pytest.mark.parametrize(
    ("step", "nth", "fields", "requirement"),
    [
        ("complete", 2, {"generation": 2}, "GEN-02"),
        ("empty", 0, {"generation": 5}, "GEN-02"),
        ("prepare", 3, {"generation": 2}, "GEN-03"),
        ("publish", 2, {"generation": 2}, "SYNC-04"),
        ("publish", 0, {"count": 2}, "GEN-20"),
    ],
)
def test_a_log_of_a_wrong_coordinator(
    step: str, nth: int, fields: dict[str, Any], requirement: str, demo: tuple[Header, list[Event]]
) -> None:
    header, events = demo
    assert judge(header, events).violations == ()
    assert violated_guards(judge(header, alter_step(events, step, nth, **fields)))[0][0] == requirement


@pytest.mark.parametrize(
    ("step", "nth", "fields"),
    [
        ("complete", 1, {"generation": 3}),
        ("prepare", 1, {"generation": 7}),
        ("prepare", 2, {"generation": 0}),
        ("publish", 1, {"generation": 5}),
    ],
)
def test_a_generation_that_missing_lines_explain(
    step: str, nth: int, fields: dict[str, Any], demo: tuple[Header, list[Event]]
) -> None:
    header, events = demo
    place = next(number for number, event in enumerate(alter_step(events, step, nth, **fields)) if event not in events)
    assert judge(header, alter_step(events, step, nth, **fields)[: place + 1]).violations == ()


def test_a_second_leader_and_a_second_assignment(demo: tuple[Header, list[Event]]) -> None:
    header, events = demo
    place = next(number for number, event in enumerate(events) if event.body.get("step") == "publish")
    again = [*events[: place + 1], events[place], *events[place + 1 :]]
    assert violated_guards(judge(header, again)) == []  # both came before the first one was stored
    other = replace(events[place], body={**events[place].body, "member": "somebody"})
    twice = [*events[: place + 1], other, *events[place + 1 :]]
    assert ("GEN-05", "the leader hands it in") in violated_guards(judge(header, twice))


def test_a_leader_that_has_left(demo: tuple[Header, list[Event]]) -> None:
    header, events = demo
    place = next(number for number, event in enumerate(events) if event.body.get("step") == "publish")
    leader = events[place].body["member"]
    left = replace(events[place], body={"step": "unregister", "group": "demo-4", "member": leader})
    assert ("GEN-06", "the leader is a member") in violated_guards(
        judge(header, [*events[:place], left, *events[place:]])
    )


def test_what_a_log_does_not_show_is_no_fault(demo: tuple[Header, list[Event]]) -> None:
    header, events = demo
    for at in range(1, len(events)):
        assert judge(header, [events[0], *events[at:]]).violations == ()
    gap = Event(0, 0, 0, "", Kind.INTERNAL, "unknown", 0, {"reason": "a coordinator loads its groups"})
    half = len(events) // 2
    assert judge(header, [*events[:half], gap, *events[half + 4 :]]).violations == ()
    for lost in range(1, len(events)):
        assert judge(header, [*events[:lost], *events[lost + 1 :]]).violations == ()


def test_every_step_that_lines_tell_of_is_one_for_the_judge() -> None:
    told = {form.step for coordinator in COORDINATORS for form in coordinator.forms}
    assert told - {"-", "load", "lose", "issue", "register", "withdraw", "sweep", "delete"} == STEP_HANDLERS.keys()
