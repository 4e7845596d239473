"""The dispatcher is proved to let the core decide, and each theorem is refuted of a dispatcher that breaks it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.coordinator import dispatch
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Choices, Context, HeartbeatRequest, JoinRequest, Protocol
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.messages import Heartbeat, JoinGroup
from fencepost.model.classic.proofs.dispatch_events import KNOWN, MISSING, TOPICS, dispatch_events
from fencepost.model.classic.proofs.induction import ProofSize, ProvedEvent, prove_event
from fencepost.model.classic.theorems.dispatch_statements import (
    DISPATCH_THEOREMS,
    REFUSALS,
    DispatchedStep,
    dispatch_request,
)
from fencepost.model.errors import Error
from fencepost.model.groups import offsets
from fencepost.model.groups.messages import CommitRequest, Offset, OffsetCommit
from fencepost.model.groups.protocol import Cluster
from fencepost.model.settings import Settings
from tests.support.edits import mutant
from tests.support.plain_values import build

TINY = ProofSize(slots=1, partitions=1)
EVENTS = {event.name: event for event in dispatch_events(TINY.slots)}
OFFERED = (build(Protocol, "range", b""),)
JOIN = build(JoinRequest, 1, None, None, "consumer", OFFERED, 10_000, 10_000, requires_id=False, can_skip=False)
CLUSTER = Cluster(Settings(), TOPICS)
BREAKS: dict[str, tuple[Callable[..., Any], str, str, str]] = {
    "refusal": (
        dispatch.on_heartbeat,
        'respond(state, request, HeartbeatResponse(Error.UNKNOWN_MEMBER_ID), "heartbeat.empty")',
        'respond(state, request, HeartbeatResponse(Error.NONE), "heartbeat.empty")',
        "heartbeat",
    ),
    "core": (dispatch.apply_core_step, "evolve(state, group=after)", "state", "heartbeat"),
    "room": (dispatch.takes_slot, "absent(request.member)", "False", "join"),
    "record": (dispatch.apply_core_step, "stored=group_record(after, context)", "stored=before", "leave"),
    "acknowledged": (offsets.on_commit, "if error != Error.NONE", "if False", "commit"),
    "stored": (offsets.on_commit, "offsets={**state.offsets, **stored}", "offsets=stored", "commit"),
}
"""By theorem: a function, a text in it, what is there instead, and the event whose proof has to notice."""


def prove(name: str) -> ProvedEvent:
    """The proof of one event, for the smallest table."""
    return prove_event(EVENTS[name], DISPATCH_THEOREMS, TINY)


@pytest.mark.parametrize("name", EVENTS)
def test_the_dispatcher_is_proved(name: str) -> None:
    verdict = prove(name)
    assert verdict.possible and verdict.paths > 5
    assert not verdict.refutations and not verdict.undecided


@pytest.mark.parametrize("theorem", BREAKS)
def test_each_theorem_is_refuted_of_a_dispatcher_that_breaks_it(theorem: str) -> None:
    function, before, after, event = BREAKS[theorem]
    with mutant(function, before, after):
        assert theorem in {one.statement.id for one in prove(event).refutations}


def test_every_theorem_has_a_break() -> None:
    assert list(BREAKS) == [one.id for one in DISPATCH_THEOREMS]


def test_rules_of_refusals_are_rules() -> None:
    assert RULES.keys() >= REFUSALS


def context() -> Context:
    """A moment in the newer dialect."""
    return Context(5, choices=build(Choices, "a"), dialect=Dialect())


def kept_theorems(step: DispatchedStep) -> set[str]:
    """The theorems that hold of a step."""
    return {one.id for one in DISPATCH_THEOREMS if one.holds(step)}


def test_theorems_hold_of_plain_steps_and_fail_of_altered_ones() -> None:
    every = {one.id for one in DISPATCH_THEOREMS}
    joined = dispatch_request(GroupState(), JoinGroup("g", JOIN), context(), CLUSTER)
    assert joined.core is not None and kept_theorems(joined) == every
    assert kept_theorems(replace(joined, after=GroupState())) == every - {"core"}
    refused = dispatch_request(
        GroupState(), Heartbeat("g", build(HeartbeatRequest, 1, "a", None, 1)), context(), CLUSTER
    )
    assert refused.core is None and kept_theorems(refused) == every
    assert kept_theorems(replace(refused, after=joined.after)) == every - {"refusal"}


def test_a_plain_commit_is_stored_as_answered() -> None:
    asked = tuple((where, Offset(7)) for where in (KNOWN, MISSING))
    commit = OffsetCommit("g", build(CommitRequest, 1, None, None, -1), 8, asked)
    step = dispatch_request(GroupState(), commit, context(), CLUSTER)
    (reply,) = step.replies
    response: Any = reply.response
    assert response.errors == {KNOWN: Error.NONE, MISSING: Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert kept_theorems(step) == {one.id for one in DISPATCH_THEOREMS}
    other = replace(step.after, offsets={KNOWN: Offset(8)})
    assert "stored" not in kept_theorems(replace(step, after=other))
