"""Steps that the search remembers: a step is taken once from equal states, and nothing else changes."""

import random
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import pytest

from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.dialect import Dialect
from fencepost.model.frozen import evolve
from fencepost.model.settings import Settings
from fencepost.traces.classic import stepping
from fencepost.traces.classic.nondeterminism import outcomes_over_dialects
from fencepost.traces.events import Event, Header, Operation, Order
from fencepost.traces.judge.judge import judge
from fencepost.traces.judge.registry import DEFAULT_PROTOCOL
from fencepost.traces.judge.search.configuration import Configuration, Decisions, GroupOperation
from fencepost.traces.judge.search.time_interval import TimeInterval
from fencepost.traces.verdict import TraceVerdict
from tests.support.client_view import as_seen_by_clients
from tests.support.random_client import random_trace

TRAVEL_MS = 300
SEEDS = (1, 2, 3, 5, 7, 8)


def client_trace(seed: int, *, is_altered: bool) -> tuple[Header, tuple[Event, ...]]:
    """A random trace seen by clients; altered ones have an error in the place of the last success."""
    header, events = random_trace(random.Random(seed), steps=20, pause=100)
    header, events = as_seen_by_clients(replace(header, grace=2 * TRAVEL_MS), events, random.Random(seed), TRAVEL_MS)
    if not is_altered:
        return header, events
    last = max(place for place, event in enumerate(events) if event.of and event.body.get("error_code") == 0)
    wrong = replace(events[last], body={**events[last].body, "error_code": 25})
    return header, (*events[:last], wrong, *events[last + 1 :])


def judge_counting(trace: tuple[Header, tuple[Event, ...]], patch: pytest.MonkeyPatch) -> tuple[TraceVerdict, int]:
    """The verdict, and how many requests the model handled on the way to it."""
    calls, handle = 0, handle_request

    def handle_and_count(*arguments: object) -> StepResult:
        nonlocal calls
        calls += 1
        return handle(*arguments)  # type: ignore[arg-type]

    with patch.context() as counting:
        counting.setattr(stepping, "handle_request", handle_and_count)
        return judge(*trace), calls


def remember_nothing(
    stepper: stepping.CoordinatorStepper, configurations: Iterable[Configuration]
) -> AbstractContextManager[None]:
    """In the place of `remember_steps`."""
    return nullcontext()


@pytest.mark.parametrize("is_altered", [False, True])
def test_verdicts_are_those_without_memory(is_altered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = 0
    for seed in SEEDS:
        trace = client_trace(seed, is_altered=is_altered)
        verdict, calls = judge_counting(trace, monkeypatch)
        with monkeypatch.context() as plainly:
            plainly.setattr(stepping.CoordinatorStepper, "remember_steps", remember_nothing)
            plain, plain_calls = judge_counting(trace, monkeypatch)
        assert verdict == plain
        assert calls <= plain_calls
        saved += plain_calls - calls
    assert saved > 0


JOIN = {
    "group_id": "g",
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "member_id": "",
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b""}],
}
COMMIT = {
    "group_id": "g",
    "generation_id_or_member_epoch": 1,
    "member_id": "m",
    "group_instance_id": None,
    "topics": [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
}


@pytest.mark.parametrize(
    ("api", "version", "body", "later", "decisions"),
    [
        ("JoinGroup", 3, JOIN, 500, ()),
        ("OffsetCommit", 9, COMMIT, 0, (("unknown_group_named", False),)),
    ],
)
def test_other_circumstances_are_not_looked_up(
    api: str, version: int, body: dict[str, object], later: int, decisions: Decisions
) -> None:
    header = Header("test", Order.INTERVALS, "wall", Settings(), 0)
    protocol = DEFAULT_PROTOCOL(header)
    operation = Operation(1, api, version, "m", body, 0)
    (request,) = protocol.requests_in(operation, ())
    stepper, part = protocol.new_stepper("g", header.settings), GroupOperation(operation, request)
    stepper.open_operations[1] = part
    start = stepper.initial_configuration(())
    other = evolve(start, decisions=decisions)

    def take_steps() -> list[list[Configuration]]:
        return [
            list(stepper.handle_request(start, part, TimeInterval(0, 10))),
            list(stepper.handle_request(other, part, TimeInterval(later, later + 10))),
        ]

    plain = take_steps()
    with stepper.remember_steps([start]):
        assert take_steps() == take_steps() == plain
    assert plain[0] != plain[1]


def count_runs(*questions: str, effective: str = "") -> tuple[int, int]:
    """How often a step that asks these questions is taken, and how many outcomes it has."""
    runs = 0

    def run(dialect: Dialect) -> StepResult:
        nonlocal runs
        runs += 1
        asked = {question: getattr(dialect, question) for question in questions}
        return StepResult(GroupState(), (), f"rule-{asked.get(effective)}")

    found = list(outcomes_over_dialects(run, ()))
    return runs, len(found)


def test_a_step_is_taken_once_for_each_set_of_answers() -> None:
    assert count_runs() == (1, 1)
    assert count_runs("one") == (2, 1)
    assert count_runs("one", effective="one") == (2, 2)
    assert count_runs("one", "two", effective="two") == (4, 4)
    assert count_runs("one", "two") == (4, 1)
