"""What the proofs assume and something else checks: checks that have no better place, and that each is there."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fencepost.adapters.serve.server import Server
from fencepost.model.classic.coordinator.dispatch import handle_request
from fencepost.model.classic.core import join_phase, membership
from fencepost.model.classic.core.membership import leave, rebalance_after_leave, remove_entry
from fencepost.model.classic.core.state import FREE, Group, Holder, LeaveRequest, LeaveResponse, Output, Phase
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.explore.group_system import group_system
from fencepost.model.classic.explore.state_layout import Bounds, ModelConfig, untimed_member
from fencepost.model.classic.member import member
from fencepost.model.classic.messages import Request
from fencepost.model.classic.proofs.induction import ProofSize
from fencepost.model.classic.proofs.proof_events import coordinator_events
from fencepost.model.classic.proofs.results import theorem_sentences
from fencepost.model.errors import Error
from fencepost.model.explore.search import PlainSearch
from fencepost.model.explore.transition_tables import TransitionTables
from fencepost.model.proofs import symbolic_values
from fencepost.model.proofs.symbolic_execution import PathDecisions
from fencepost.model.proofs.terms import Term
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import decode_body, encode_body
from fencepost.model.wire.primitives import UnencodableError
from tests.model.proofs.agreement import Agreement, Disagreement, agree, compare
from tests.model.proofs.transition_relation import OutOfDomain, TransitionRelation
from tests.support.edits import mutant
from tests.support.model_driver import P_THEN_Q, ModelCoordinatorDriver, driver_in_phase
from tests.support.plain_values import build
from tests.support.proof_document import rows

ROOT = Path(__file__).parents[3]
PHASES = (Phase.PREPARING, Phase.COMPLETING, Phase.STABLE)
ENTRIES = (("m1", None), ("m2", "i"), ("m3", None), ("nobody", None), (None, "i"), (None, None))


def groups_with_three(dialect: Dialect) -> Iterator[ModelCoordinatorDriver]:
    """Groups in each phase, some with a pending id."""
    for phase, asks in product(PHASES, (False, True)):
        driver = driver_in_phase(phase, dialect=dialect)
        if asks:
            driver.join(protocols=P_THEN_Q)
        yield driver


@pytest.mark.parametrize("once", [True, False], ids=["settles once", "settles each"])
def test_a_leave_of_three_entries_is_made_of_the_parts_that_are_proved(once: bool) -> None:
    seen: set[Error] = set()
    for driver in groups_with_three(Dialect(batch_leave_settles_once=once)):
        context = driver.context()
        for entries in product(ENTRIES, repeat=3):
            request = build(LeaveRequest, 99, entries)
            step = leave(driver.group, request, context)
            parts = leave_in_parts(driver.group, entries, context, once)
            assert (step.group, step.outputs) == parts
            response = step.outputs[0].response
            assert isinstance(response, LeaveResponse)
            seen |= set(response.entries)
    assert {Error.NONE, Error.UNKNOWN_MEMBER_ID} <= seen


def leave_in_parts(group: Group, entries: Any, context: Any, once: bool) -> tuple[Group, tuple[Output, ...]]:
    """Each entry by itself, and the look at the round after each or after all."""
    errors: list[Error] = []
    outputs: list[Output] = []
    left = False
    for id, instance in entries:
        error, noticed, (group, silenced) = remove_entry(group, id, instance, context)
        errors.append(error)
        outputs += silenced
        left = left or noticed
        if noticed and not once:
            group, responses = rebalance_after_leave(group, context)
            outputs += responses
    if left and once:
        group, responses = rebalance_after_leave(group, context)
        outputs += responses
    return group, (build(Output, 99, LeaveResponse(Error.NONE, tuple(errors))), *outputs)


class WideDriver(ModelCoordinatorDriver):
    """A driver that holds every step against the same one with more free slots, in front and behind."""

    steps = 0

    def send(self, request: Request) -> int:
        before, context = self.state, self.context(f"m{self.id_count + is_nameless(request)}")
        plain = handle_request(before, request, context, self.cluster)
        if before.group is not None:
            wide = replace(before, group=replace(before.group, slots=(*before.group.slots, FREE, FREE, FREE)))
            other = handle_request(wide, request, context, self.cluster)
            assert (bare(other.replies), other.rule) == (bare(plain.replies), plain.rule)
            assert without_free_slots(other.state.group) == without_free_slots(plain.state.group)
            self.steps += 1
        return super().send(request)


def is_nameless(request: Any) -> bool:
    """Whether the request is a JoinGroup without an id."""
    return type(request).__name__ == "JoinGroup" and request.core.member is None


def bare(replies: Any) -> list[Any]:
    """The replies without the free slots among the members that a leader is told of."""
    found = []
    for reply in replies:
        views = getattr(reply.response, "members", ())
        told = tuple(view for view in views if view.id is not None)
        found.append((reply.handle, replace(reply.response, members=told) if views else reply.response))
    return found


def without_free_slots(group: Group | None) -> Any:
    """The group without its free slots."""
    if group is None:
        return None
    return replace(group, slots=tuple(slot for slot in group.slots if slot.holder != Holder.NOBODY))


def test_nobody_notices_how_large_the_table_is() -> None:
    driver, random = WideDriver(), Random(1)
    for _ in range(400):
        names = [None, *(f"m{number}" for number in range(1, driver.id_count + 1))][-5:]
        member, generation = random.choice(names), 0 if driver.state.group is None else driver.group.generation
        match random.randrange(6):
            case 0 | 1:
                driver.join(member, instance=random.choice([None, None, "i"]) if member is None else None)
            case 2:
                driver.sync(member, generation, tuple((name, b"x") for name in names if name))
            case 3:
                driver.heartbeat(member, generation)
            case 4 if not random.randrange(4):
                driver.leave((member, None))
            case _:
                driver.wait(random.choice([10, 3_000, 12_000]))
    assert driver.steps > 200 and {"sync.leader", "join.id-required", "leave.member"} <= set(driver.rules)


def test_a_generation_beyond_32_bits_is_not_sent() -> None:
    body = {"error_code": 0, "generation_id": 2**31 - 1, "protocol_name": "p", "leader": "a", "member_id": "a"}
    whole = {**body, "members": []}
    assert decode_body("JoinGroupResponse", 0, encode_body("JoinGroupResponse", 0, whole)).body == whole
    with pytest.raises(UnencodableError):
        encode_body("JoinGroupResponse", 0, {**whole, "generation_id": 2**31})


async def test_the_server_draws_no_member_id_twice() -> None:
    server = Server(Settings(), None)
    bodies = [await server.ask("JoinGroup", 9, join_body()) for _ in range(50)]
    await server.close()
    assert len({body["member_id"] for body in bodies} - {""}) == 50


def join_body() -> dict[str, Any]:
    """A JoinGroup without an id."""
    return {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "p", "metadata": b""}],
        "reason": None,
    }


ASSUMED = rows("| assumption | what checks it |")


def test_every_assumption_is_listed() -> None:
    assert len(ASSUMED) == 18


@pytest.mark.parametrize("assumption", ASSUMED, ids=lambda row: row[0][:40])
def test_each_assumption_names_a_check_that_exists(assumption: tuple[str, ...]) -> None:
    checks = references(assumption[1])
    assert checks
    assert [name for name in checks if not exists(name)] == []


def references(text: str) -> list[str]:
    """The tests and theorems that a row names as its checks."""
    return [name for name in re.findall(r"`([^`]+)`", text) if "test_" in name or name in theorem_sentences()]


def exists(name: str) -> bool:
    """Whether there is such a theorem, or such a test in such a file."""
    if name in theorem_sentences():
        return True
    path, _, test = name.partition("::")
    file = ROOT / path
    return file.is_file() and (not test or f"def {test}(" in file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["T99", "tests/model/test_none.py", "tests/model/test_tables.py::test_none"])
def test_a_check_that_is_not_there_is_missed(name: str) -> None:
    assert not exists(name)


# --- The executable step, the symbolic relation and the explored graph agree, and a deviation of any one is caught.

ONE = ModelConfig((untimed_member(),))
ONE_STATIC = ModelConfig((untimed_member(instance="one"),))
TWO = ModelConfig((untimed_member(), untimed_member()), heartbeats=False)
LONG, TINY = Bounds(ids=2, generations=2, requests=4, slots=1), Bounds(ids=1, generations=1, requests=2, slots=1)
INSTANCES = ((ONE, LONG), (ONE_STATIC, LONG), (TWO, replace(TINY, requests=3)))
ENOUGH = 10_000


@pytest.fixture(scope="module")
def agreement() -> Agreement:
    found = Agreement()
    for setting, bounds in INSTANCES:
        agree(setting, bounds, agreement=found)
    return found


@pytest.mark.slow
def test_three_engines_agree_on_every_state(agreement: Agreement) -> None:
    assert agreement.states >= ENOUGH
    assert agreement.transitions > 3 * agreement.states
    assert agreement.paths > 70


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        (membership.commit, "request.generation != group.generation", "False"),
        (membership.respond_to_commit, "CommitResponse(error)", "CommitResponse(Error.NONE)"),
        (join_phase.complete_join, "group.generation + 1", "group.generation"),
        (member.lose_membership, "id=None", "id=member.id"),
    ],
)
def test_a_handler_that_strays_is_caught(
    agreement: Agreement, function: Callable[..., Any], before: str, after: str
) -> None:
    """The relations are those of the shipped handlers."""
    with mutant(function, before, after), pytest.raises(Disagreement, match="symbolic"):
        agree(ONE, LONG, agreement=Agreement(relations=agreement.relations))


def test_an_executor_that_misses_a_branch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = PathDecisions.decide

    def hasty(path: PathDecisions, term: Term) -> bool:
        chosen = decide(path, term)
        path.others.clear()
        return chosen

    monkeypatch.setattr(PathDecisions, "decide", hasty)
    with pytest.raises(Disagreement, match=r"symbolic: \[\]"):
        agree(ONE, TINY)


@pytest.mark.slow
def test_an_executor_that_merges_wrongly_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic_values, "alternative", lambda condition, then, otherwise: otherwise)
    with pytest.raises(Disagreement, match="symbolic"):
        agree(ONE, TINY)


@pytest.mark.parametrize("tampered", [lambda effects: effects[1:], lambda effects: (*effects, (0, 0))])
def test_a_search_that_misses_or_adds_an_edge_is_caught(
    tampered: Callable[[tuple[tuple[int, int], ...]], tuple[tuple[int, int], ...]],
) -> None:
    system = group_system(ONE, TINY, reduced=False)
    search = PlainSearch(TransitionTables(system))
    search.run()
    compare(search, system, Agreement())
    for table in search.tables.actions:
        for local, effects in table.effects.items():
            if len(effects) > 1:
                with pytest.raises(Disagreement, match="successors, explored"):
                    table.effects[local] = tampered(effects)
                    compare(search, system, Agreement())
                return
    raise AssertionError("nowhere are there two things to do")


def test_what_the_proof_is_not_about_is_refused() -> None:
    (event,) = (event for event in coordinator_events(1) if event.name == "expire-join")
    relation = TransitionRelation(event, ProofSize(slots=1, partitions=1))
    group = group_system(ONE, replace(TINY, slots=2)).initial[0].group
    with pytest.raises(OutOfDomain, match="2 are more than 1"):
        relation.steps(group, ())
