"""`fencepost report TRACE` on traces of push and of a region: the story of a group as text, page, Markdown and JSON."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from fencepost.adapters.target import Exchange
from fencepost.conformance.cli import main
from fencepost.conformance.reports.document import Document
from fencepost.conformance.reports.incident import history_blocks
from fencepost.conformance.reports.json_report import report_schema
from fencepost.conformance.reports.text import render_text
from fencepost.conformance.run.requests import Call, Unanswered
from fencepost.model.settings import Settings
from fencepost.traces.events import Body, Event, Header, Kind, Lookahead, Order
from fencepost.traces.history.builder import CauseKind, GroupTimeline, TraceHistory
from fencepost.traces.history.recorder import NoHistory, make_recorder
from fencepost.traces.judge.judge import Judge
from tests.support.faulty_regions import FAULTS as REGION_FAULTS
from tests.support.push.faults import FAULTS as PUSH_FAULTS
from tests.support.system_traces import write_push_traces, write_region_traces

Capture = pytest.CaptureFixture[str]


class Script:
    """Events in the order of time: requests with their responses."""

    def __init__(self, protocol: str, order: Order) -> None:
        self.header = Header("here", order, "virtual", Settings(), 0, protocol=protocol)
        self.events: list[Event] = []

    def add(self, time: int, kind: Kind, api: str, connection: int = 0, of: int | None = None, **body: Any) -> int:
        number = len(self.events)
        self.events.append(Event(number, time, connection, str(connection), kind, api, 0, body, of))
        return number

    def ask(self, time: int, api: str, connection: int = 0, **body: Any) -> int:
        return self.add(time, Kind.REQUEST, api, connection, **body)

    def answer(self, time: int, request: int, **body: Any) -> None:
        asked = self.events[request]
        self.add(time, Kind.RESPONSE, asked.api, asked.connection, request, **body)

    def history(self) -> TraceHistory:
        histories: list[TraceHistory] = []
        recorder, judge = make_recorder("t.jsonl", self.header, histories), Judge(self.header)
        for moment in Lookahead(self.events).pair_operations():
            recorder.before_event(moment, judge)
            recorder.after_event(moment, judge)
        recorder.finish()
        return histories[0]

    def read_timeline(self) -> GroupTimeline:
        (timeline,) = self.history().groups
        return timeline


class PushScript(Script):
    """The messages of consumers of one group."""

    def __init__(self) -> None:
        super().__init__("push", Order.INTERVALS)

    def join(self, time: int, connection: int, consumer: str) -> None:
        body = {"group": "g", "consumer": consumer, "topic_count": '{"t": 1}', "session_timeout_ms": 600}
        request = self.ask(time, "RegisterConsumer", connection, **body)
        self.answer(time, request, error_code=0)

    def stop(self, time: int, attempt: int, *answers: tuple[int, int | None]) -> None:
        """A Stop on each connection, with the times of the responses."""
        self.command("Stop", time, attempt, answers, partitions=[])

    def start(self, time: int, attempt: int, *answers: tuple[int, int | None]) -> None:
        self.command("Start", time, attempt, answers, error_code=0)

    def command(
        self, api: str, time: int, attempt: int, answers: Iterable[tuple[int, int | None]], **body: Any
    ) -> None:
        sent = [(self.ask(time, api, one, attempt=attempt, partitions=[]), at) for one, at in answers]
        for request, at in sorted(sent, key=lambda each: each[1] or 0):
            if at is not None:
                self.answer(at, request, attempt=attempt, **body)


def test_push_tells_who_came_who_went_and_who_was_last() -> None:
    script = PushScript()
    script.join(0, 1, "ada")
    script.stop(10, 1, (1, 20))
    script.start(30, 1, (1, 40))
    script.join(100, 2, "bob")
    script.stop(110, 2, (1, 180), (2, 120))
    script.start(190, 2, (1, 200), (2, 250))
    script.add(900, Kind.FAULT, "closed", 2)
    script.stop(910, 3, (1, None))
    script.stop(1_500, 4, (1, 1_510))
    script.start(1_520, 4, (1, 1_530))
    script.add(2_000, Kind.INTERNAL, "partitions", topics={"t": ["0-0"]})
    script.stop(2_010, 5, (1, None))
    told = script.read_timeline()
    first, second, third, again, last = told.rebalances
    assert (first.cause.kind, second.cause.members, second.generation) == (CauseKind.CAME, ("bob",), 2)
    assert second.join_hold is not None and (second.join_hold.members, second.join_hold.waited) == (("ada",), 70)
    assert second.sync_hold is not None and (second.sync_hold.members, second.sync_hold.waited) == (("bob",), 60)
    assert (third.cause.kind, again.cause.detail) == (CauseKind.CLOSED, "the attempt before it failed")
    assert last.ended is None and last.join_hold is not None and last.join_hold.members == ("ada",)
    text = render_text(Document("", tuple(history_blocks([script.history()]))))
    for words in (
        "5 rebalances of 1 group, the longest 590 ms; 1 not over at the end",
        "messages between consumers and a push coordinator",
        "The connection of bob ended",
        "Another rebalance began before it was over.",
        "The topics or their partitions changed",
        "attempt 1 → 2, 140 ms",
        "Members that went: 1 disconnected.",
    ):
        assert words in " ".join(text.split()), words


def test_push_knows_nothing_of_a_group_whose_coordinator_is_gone() -> None:
    script = PushScript()
    script.join(0, 1, "ada")
    script.stop(0, 1, (1, 0))
    script.start(0, 1, (1, 0))
    script.add(50, Kind.INTERNAL, "lost-coordinator")
    script.add(60, Kind.FAULT, "closed", 1)
    script.join(500, 3, "ada")
    told = script.read_timeline()
    assert (told.phase, [each.phase for each in told.spans]) == ("Empty", ["Stable", "", "Empty"])
    assert told.limits == ((50, "another coordinator begins with an empty group"),)


class RegionScript(Script):
    """The requests to the operators of a job."""

    def __init__(self) -> None:
        super().__init__("region", Order.TOTAL)

    def do(self, time: int, api: str, operator: str, **more: Any) -> None:
        fields = {name: more.pop(name) for name in ("number",) if name in more}
        self.answer(time, self.ask(time, api, operator=operator, **fields), **more)


def test_a_region_tells_its_checkpoints_and_what_resets_wait_for() -> None:
    script = RegionScript()
    for name in "AB":
        script.do(0, "launch", name, refused=False)
    for name in "AB":
        script.do(100, "drain", name, fails=False)
    for name in "AB":
        script.do(110, "checkpoint", name, number=1, written={})
    for name in "AB":
        script.do(120, "resume", name)
    script.do(200, "revoke", "A", asks=True)
    script.do(210, "reset", "A", number=1, done=False)
    script.do(260, "reset", "B", number=1, done=False)
    script.do(270, "finish", "A", number=1, done=True)
    script.do(300, "finish", "B", number=1, done=True)
    script.do(400, "crash", "B")
    script.do(500, "launch", "B", refused=False)
    script.do(510, "reset", "A", number=0, done=True)
    told = script.read_timeline()
    assert [(each.phase, each.generation, each.since, each.until) for each in told.spans] == [
        ("Stable", 0, 0, 100),
        ("Draining", 0, 100, 110),
        ("Writing", 0, 110, 120),
        ("Stable", 1, 120, 210),
        ("Stable", 1, 300, 510),
    ]
    first, last = told.rebalances
    assert (first.cause.detail, first.joined, first.ended, first.generation) == ("A asked for it", 270, 300, 1)
    assert first.join_hold is not None and (first.join_hold.members, first.join_hold.waited) == (("B",), 50)
    assert (last.cause.kind, last.cause.members) == (CauseKind.CRASHED, ("B",))
    assert last.ended is None and last.sync_hold is not None and last.sync_hold.members == ("B",)
    text = " ".join(render_text(Document("", tuple(history_blocks([script.history()])))).split())
    for words in (
        "2 resets of 1 group",
        "checkpoint 1, 90 ms",
        "Seek 30 ms: B was last",
        "B died",
        "Then Running",
    ):
        assert words in text, words


@pytest.mark.parametrize("name", ["push", "region"])
def test_a_trace_is_told_as_text_page_markdown_and_json(name: str, tmp_path: Path, capsys: Capture) -> None:
    traces = tmp_path / "traces"
    if name == "push":
        write_push_traces(traces, "PUSH-38")
    else:
        write_region_traces(traces, "REGION-31")
    files = {kind: tmp_path / f"r.{kind}" for kind in ("html", "md", "json")}
    options = ["--html", str(files["html"]), "--markdown", str(files["md"]), "--json", str(files["json"])]
    assert main(["report", str(traces), *options]) == 0
    change, phase = ("rebalance", "Fetching") if name == "push" else ("reset", "Running")
    assert f"{change}s, " in capsys.readouterr().out
    page, markdown, document = (files[kind].read_text() for kind in ("html", "md", "json"))
    assert 'class="timeline"' in page and f"{change}s</th>" in page and phase in page
    assert change in markdown and phase in markdown
    told = json.loads(document)
    jsonschema.validate(told, json.loads(report_schema()))
    assert {each["protocol"] for each in told["histories"]} == {name}


def test_a_failure_is_drawn_below_the_story(tmp_path: Path) -> None:
    with PUSH_FAULTS["start_before_all_stopped"].activate():
        write_push_traces(tmp_path / "push", "PUSH-38")
    with REGION_FAULTS["leave_out_seek_map"].activate():
        write_region_traces(tmp_path / "region", "REGION-31")
    for name, words in (("push", ("Start", "attempt=1")), ("region", ("finish", "reset"))):
        page, markdown = tmp_path / f"{name}.html", tmp_path / f"{name}.md"
        assert main(["report", str(tmp_path / name), "--html", str(page), "--markdown", str(markdown)]) == 1
        assert 'class="sequence"' in page.read_text() and "sequenceDiagram" in markdown.read_text()
        assert all(word in markdown.read_text() for word in words)


def test_no_history_is_told_of_an_unknown_protocol() -> None:
    with pytest.raises(NoHistory, match="no history is told of the protocol rent: use fencepost judge"):
        Script("rent", Order.TOTAL).history()


# --- Calls of scenarios: what a response teaches, and when.


def call_with(response: "asyncio.Future[Body | None]") -> Call:
    """A call of a request whose response is the future's."""
    return Call("JoinGroup", 4, Exchange(None, response, lambda: None), timeout=1_000)


async def test_a_caller_goes_on_after_what_a_response_teaches() -> None:
    """The response may be there before the call is awaited, as in process. Python 3.12 changed `asyncio.wait_for`."""
    response: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
    learnt: list[str] = []
    response.add_done_callback(lambda done: learnt.append((done.result() or {})["member_id"]))
    response.set_result({"error_code": 79, "member_id": "A"})
    await call_with(response)
    assert learnt == ["A"]


async def test_a_call_without_a_response_ends() -> None:
    """The wait is bounded, and does not cancel the response."""
    response: asyncio.Future[Body | None] = asyncio.get_running_loop().create_future()
    with pytest.raises(Unanswered, match="no answer to JoinGroup within 1000 ms"):
        await call_with(response)
    assert not response.done()
