"""Calm groups: what a request comes to is remembered as long as it cannot come to anything else."""

import operator
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from fencepost.model.classic.coordinator import dispatch
from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core import membership
from fencepost.model.classic.core.state import Context, Group, HeartbeatRequest, Step
from fencepost.model.classic.dialect import Dialect
from fencepost.model.frozen import evolve
from fencepost.model.groups import offsets
from fencepost.model.settings import Settings
from fencepost.traces.classic import calm_group, stepping
from fencepost.traces.classic.calm_group import (
    REST,
    CalmStep,
    Opaque,
    OpaqueMapping,
    OpaqueTime,
    OpaqueValueRead,
    learn_step,
)
from fencepost.traces.classic.nondeterminism import outcomes_over_dialects
from fencepost.traces.events import Event, Header, Kind, Lookahead, Operation, Order
from fencepost.traces.judge.groups.group_judge import RepetitionError
from fencepost.traces.judge.judge import DEFAULT_PROTOCOL, Judge, judge
from fencepost.traces.judge.search.configuration import Configuration, Decisions, GroupOperation, TimeInterval
from fencepost.traces.verdict import TraceVerdict
from tests.identity.verdicts import RECORDINGS, read_recording
from tests.support.altered_traces import altered_trace
from tests.support.calm_traces import altered_calm_trace, calm_trace
from tests.support.client_view import as_seen_by_clients
from tests.support.random_client import random_trace
from tests.support.repetition_comparison import compare_repetitions

READS: tuple[Callable[[Any], object], ...] = (
    bool,
    int,
    hash,
    str,
    repr,
    len,
    list,
    lambda value: value == 0,
    lambda value: value != 0,
    lambda value: value < 0,
    lambda value: value > 0,
    lambda value: value - value,
    lambda value: value * 2,
    lambda value: value % 2,
    lambda value: f"{value}",
    lambda value: value.real,
    lambda value: [1, 2][value],
    lambda value: max(value, 0),
    lambda value: {value: 0},
)


@pytest.fixture(scope="module")
def calm() -> tuple[Header, tuple[Event, ...]]:
    """A trace that is calm for the most part."""
    return calm_trace(random.Random(4), 3)


def repeated_steps(header: Header, events: tuple[Event, ...]) -> int:
    """How many steps are repeated, each of which is checked."""
    judge = Judge(header, check_repetitions=True)
    assert not judge.judge_events(events).violations
    return judge.trace.repeated_steps


@pytest.mark.parametrize("read", READS, ids=range(len(READS)))
@pytest.mark.parametrize("kind", [Opaque, OpaqueTime, OpaqueMapping])
def test_nobody_can_look_at_an_opaque_value(kind: type, read: Callable[[Any], object]) -> None:
    with pytest.raises(OpaqueValueRead):
        read(kind())


def test_opaque_times_can_be_counted_from() -> None:
    now = OpaqueTime()
    assert ((now + 3) + 4).later == 7
    assert (3 + now).later == 3
    with pytest.raises(OpaqueValueRead):
        now + now  # type: ignore[operator]


def test_an_opaque_mapping_can_be_added_to() -> None:
    mapping: Any = OpaqueMapping()
    assert {**mapping, "a": 1} == {REST: REST, "a": 1}
    looks: tuple[Callable[[], object], ...] = (
        lambda: mapping["a"],
        lambda: "a" in mapping,
        lambda: mapping.items(),
        lambda: operator.contains(mapping.keys(), "a"),
    )
    for look in looks:
        with pytest.raises(OpaqueValueRead):
            look()


def test_a_calm_group_repeats_its_steps(calm: tuple[Header, tuple[Event, ...]]) -> None:
    assert repeated_steps(*calm) > 100


def test_altered_traces_get_the_verdict_of_the_plain_way() -> None:
    compared = compare_repetitions(altered_calm_trace(seed) for seed in range(25))
    assert compared.repeated > 500
    assert compared.with_violations > 5
    assert compared.different == 0


@pytest.mark.parametrize("seed", range(0, 24, 4))
def test_recorded_and_random_traces_get_the_verdict_of_the_plain_way(seed: int) -> None:
    paths = sorted(RECORDINGS.glob("*.jsonl.gz"))[seed::96]
    assert (
        compare_repetitions([*map(read_recording, paths), altered_trace(seed), altered_trace(seed + 1)]).different == 0
    )


def test_the_comparison_finds_a_step_that_comes_to_something_else(
    calm: tuple[Header, tuple[Event, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def learn_wrongly(*arguments: Any) -> CalmStep | None:
        step = learn_step(*arguments)
        return step and replace(step, renewals=())

    monkeypatch.setattr(calm_group, "learn_step", learn_wrongly)
    with pytest.raises(RepetitionError):
        repeated_steps(*calm)


# --- handlers that are not calm ------------------------------------------------------------------------------------

EARLY, LATE = -1, 10**9


def heartbeat_with_clock(group: Group, request: HeartbeatRequest, context: Context) -> Step:
    """As the shipped one, which looks at the clock and makes nothing of it."""
    return membership.heartbeat(group, request, evolve(context, now=0) if context.now > LATE else context)


def heartbeat_with_deadline(group: Group, request: HeartbeatRequest, context: Context) -> Step:
    """As the shipped one, which looks at the deadline of a session."""
    assert all(slot.deadline > EARLY for slot in group.slots)
    return membership.heartbeat(group, request, context)


def commit_with_offset(of: Any, request: Any, context: Context, cluster: Any, protocol: Any) -> Any:
    """As the shipped one, which looks at the offsets that come."""
    assert all(offset.offset > -LATE for _, offset in request.offsets)
    return ON_COMMIT(of, request, context, cluster, protocol)


def commit_that_forgets(of: Any, request: Any, context: Context, cluster: Any, protocol: Any) -> Any:
    """As the shipped one, which keeps no older offsets."""
    return ON_COMMIT(evolve(of, offsets={}), request, context, cluster, protocol)


ON_COMMIT = offsets.on_commit


def repeated_apis(header: Header, events: tuple[Event, ...]) -> set[str]:
    """The APIs of the requests that repeat a step."""
    judge, found = Judge(header), set()
    for event, operation in Lookahead(events).pair_operations():
        before = judge.trace.repeated_steps
        judge.on_event(event, operation)
        if judge.trace.repeated_steps > before:
            found.add(event.api)
    return found


def test_heartbeats_and_commits_are_repeated(calm: tuple[Header, tuple[Event, ...]]) -> None:
    assert repeated_apis(*calm) == {"Heartbeat", "OffsetCommit"}


@pytest.mark.parametrize("handler", [heartbeat_with_clock, heartbeat_with_deadline])
def test_a_heartbeat_that_looks_at_the_clock_is_never_repeated(
    handler: object, calm: tuple[Header, tuple[Event, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "heartbeat", handler)
    assert repeated_apis(*calm) == {"OffsetCommit"}


@pytest.mark.parametrize("handler", [commit_with_offset, commit_that_forgets])
def test_a_commit_that_looks_at_offsets_or_loses_them_is_never_repeated(
    handler: object, calm: tuple[Header, tuple[Event, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "on_commit", handler)
    assert repeated_apis(*calm) == {"Heartbeat"}


def test_heartbeat_with_a_list_for_a_member_id_concerns_no_group(calm: tuple[Header, tuple[Event, ...]]) -> None:
    header, events = calm
    broken = tuple(
        replace(each, body={**each.body, "member_id": [each.body["member_id"]]})
        if each.kind is Kind.REQUEST and each.api == "Heartbeat" and each.sequence > len(events) // 2
        else each
        for each in events
    )
    judge = Judge(header)
    assert not judge.judge_events(broken).violations
    first = next(each for each in broken if isinstance(each.body.get("member_id"), list))
    assert judge.records.of(first.sequence + 1).undecided_reason == "the request is not well formed"


# --- Steps that the search remembers: a step is taken once from equal states, and nothing else changes.

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


@contextmanager
def counting_calls(patch: pytest.MonkeyPatch, *modules: ModuleType) -> Iterator[Counter[str]]:
    """How many requests the model handles for each of these modules."""
    calls: Counter[str] = Counter()

    def handle_for(name: str) -> Callable[..., StepResult]:
        def handle_and_count(*arguments: Any) -> StepResult:
            calls[name] += 1
            return handle_request(*arguments)

        return handle_and_count

    with patch.context() as counting:
        for module in modules:
            name = module.__name__.rpartition(".")[2]
            counting.setattr(module, "handle_request", handle_for(name))
        yield calls


def judge_counting(trace: tuple[Header, tuple[Event, ...]], patch: pytest.MonkeyPatch) -> tuple[TraceVerdict, int]:
    """The verdict, and how many requests the model handled on the way to it."""
    with counting_calls(patch, stepping) as calls:
        return judge(*trace), calls["stepping"]


def work_on(trace: tuple[Header, tuple[Event, ...]], patch: pytest.MonkeyPatch) -> tuple[int, int, int]:
    """How many steps the search takes, how many the fast path and learning do, and how many are repeated."""
    judge = Judge(trace[0])
    with counting_calls(patch, stepping, calm_group) as calls:
        judge.judge_events(trace[1])
    return calls["stepping"], calls["calm_group"], judge.trace.repeated_steps


def test_a_calm_trace_is_judged_with_as_little_work_as_ever(
    calm: tuple[Header, tuple[Event, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge that takes a longer way gives the same verdicts, only later: nothing but its work shows it."""
    header, events = calm
    seen = as_seen_by_clients(replace(header, grace=2), events[:200], random.Random(0), 1)
    assert (work_on(calm, monkeypatch), work_on(seen, monkeypatch)) == ((32, 87, 139), (493, 2, 5))


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
