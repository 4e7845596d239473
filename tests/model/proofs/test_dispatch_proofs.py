"""The dispatcher is proved to let the core decide, and each theorem is refuted of a dispatcher that breaks it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.coordinator import dispatch, group_log
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core import join, join_phase, member_table, membership, protocol_selection, sync, timers
from fencepost.model.classic.core.state import (
    Choices,
    Context,
    Group,
    HeartbeatRequest,
    Holder,
    JoinRequest,
    Protocol,
    Step,
)
from fencepost.model.classic.dialect import Dialect
from fencepost.model.classic.member import member
from fencepost.model.classic.messages import Heartbeat, JoinGroup
from fencepost.model.classic.proofs.dispatch_events import (
    KNOWN,
    LOADING,
    MISSING,
    TOPICS,
    dispatch_events,
    failover_events,
)
from fencepost.model.classic.proofs.induction import (
    EARLY_FAILOVERS,
    ONE_TERM,
    ProofSize,
    ProvedEvent,
    decode_refutation,
    initially_false,
    prove_event,
    replay_handler,
)
from fencepost.model.classic.proofs.proof_events import ProofEvent, coordinator_events, member_events
from fencepost.model.classic.theorems.dispatch_statements import (
    DISPATCH_THEOREMS,
    REFUSALS,
    DispatchedStep,
    dispatch_request,
)
from fencepost.model.classic.theorems.failover import (
    ACROSS_FAILOVERS,
    FAILOVERS_WHATEVER_CLIENTS_SEND,
    KEPT_BY_KAFKA,
    generation_is_stored,
    record_generation,
)
from fencepost.model.classic.theorems.ghost_state import GroupRecord
from fencepost.model.classic.theorems.member_statements import MemberChange
from fencepost.model.classic.theorems.request_statements import STEP_THEOREMS
from fencepost.model.classic.theorems.statements import WHATEVER_CLIENTS_SEND, commit_by_owner, one_leader
from fencepost.model.classic.theorems.step_statements import GENERATION_THEOREMS, CoordinatorStep
from fencepost.model.errors import Error
from fencepost.model.groups import offsets
from fencepost.model.groups.messages import CommitRequest, Offset, OffsetCommit
from fencepost.model.groups.protocol import Cluster
from fencepost.model.proposal.proofs import proposal_events
from fencepost.model.settings import Settings
from tests.support.edits import mutant
from tests.support.plain_values import build

TINY = ProofSize(slots=1, partitions=1)
EVENTS = {event.name: event for event in dispatch_events(TINY.slots)}
OFFERED = (build(Protocol, "range", b""),)
JOIN = build(JoinRequest, 1, None, None, "consumer", OFFERED, 10_000, 10_000, requires_id=False, can_skip=False)
CLUSTER = Cluster(Settings(), TOPICS)
DISPATCH_BREAKS: dict[str, tuple[Callable[..., Any], str, str, str]] = {
    "refusal": (
        dispatch.on_heartbeat,
        'respond(state, request, HeartbeatResponse(Error.UNKNOWN_MEMBER_ID), "heartbeat.empty")',
        'respond(state, request, HeartbeatResponse(Error.NONE), "heartbeat.empty")',
        "heartbeat",
    ),
    "gate": (
        dispatch.on_join,
        "not settings.min_session_timeout <= core.session_timeout <= settings.max_session_timeout",
        "True",
        "join",
    ),
    "core": (dispatch.apply_core_step, "evolve(state, group=after)", "state", "heartbeat"),
    "room": (dispatch.takes_slot, "absent(request.member)", "False", "join"),
    "record": (dispatch.apply_core_step, "stored=group_record(after, context)", "stored=before", "leave"),
    "emptied": (dispatch.apply_core_step, " and becomes_empty(before, after)", "", "sync"),
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


@pytest.mark.parametrize("theorem", DISPATCH_BREAKS)
def test_each_theorem_is_refuted_of_a_dispatcher_that_breaks_it(theorem: str) -> None:
    function, before, after, event = DISPATCH_BREAKS[theorem]
    with mutant(function, before, after):
        assert theorem in {one.statement.id for one in prove(event).refutations}


def test_every_theorem_of_dispatch_has_a_break() -> None:
    assert list(DISPATCH_BREAKS) == [one.id for one in DISPATCH_THEOREMS]


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
    assert kept_theorems(replace(refused, before=joined.after, after=joined.after)) == every - {"gate"}


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


# --- The theorems across fail-overs are inductive, and each part of the log that they rest on is missed.

SMALL = ProofSize(slots=2, partitions=1)
EARLY = {event.name: event for event in failover_events(SMALL.slots, early=True)}
KAFKA = {event.name: event for event in failover_events(SMALL.slots, early=False)}


PROPOSAL = {event.name: event for event in proposal_events(SMALL.slots)}


@pytest.mark.parametrize("event", PROPOSAL.values(), ids=PROPOSAL)
def test_the_proposal_keeps_every_theorem(event: ProofEvent) -> None:
    test_a_generation_that_is_stored_early_keeps_every_theorem(event)


@pytest.mark.parametrize("event", EARLY.values(), ids=EARLY)
def test_a_generation_that_is_stored_early_keeps_every_theorem(event: ProofEvent) -> None:
    verdict = prove_event(event, ACROSS_FAILOVERS, SMALL)
    assert verdict.possible
    assert [(one.statement.id, one.happened.result.rule) for one in verdict.refutations] == []
    assert verdict.undecided == ()


@pytest.mark.parametrize("event", KAFKA.values(), ids=KAFKA)
def test_kafka_keeps_what_is_said_of_commits_and_assignments(event: ProofEvent) -> None:
    verdict = prove_event(event, KEPT_BY_KAFKA, SMALL)
    assert verdict.possible
    assert [(one.statement.id, one.happened.result.rule) for one in verdict.refutations] == []
    assert verdict.undecided == ()


def test_a_step_of_a_term_assumes_no_more_than_one_across_failovers() -> None:
    term, early = ({one.name: one for one in made.events(SMALL.slots)} for made in (ONE_TERM, EARLY_FAILOVERS))
    states = {one.id for one in ONE_TERM.statements if not {CoordinatorStep, MemberChange} & set(one.subjects)}
    assert states == EARLY_FAILOVERS.of_term
    for name in early.keys() - {LOADING}:
        assert early[name].unassumed & states <= term[name].unassumed
        assert term[name].unproved & states <= early[name].unproved


def test_every_statement_holds_of_a_new_group_and_its_record() -> None:
    assert initially_false(ACROSS_FAILOVERS, SMALL) == initially_false(KEPT_BY_KAFKA, SMALL) == ()


def test_kafka_does_not_store_a_generation_when_it_begins() -> None:
    verdict = prove_event(KAFKA["expire-join"], ACROSS_FAILOVERS, SMALL)
    assert {"record-generation", "record-leader", "record:join-response"} <= {
        one.statement.id for one in verdict.refutations
    }


def test_an_old_coordinator_of_kafka_may_tell_of_a_generation_that_is_not_stored() -> None:
    verdict = prove_event(KAFKA["expire-join"], (*KEPT_BY_KAFKA, generation_is_stored), SMALL)
    assert {one.statement.id for one in verdict.refutations} == {"stored-generation"}


def test_what_kafka_is_proved_to_keep_leaves_out_the_leader() -> None:
    assert not {one_leader, commit_by_owner, record_generation} & set(KEPT_BY_KAFKA)


def test_no_statement_about_records_that_is_proved_alone_is_about_clients() -> None:
    alone = [one for one in (*ACROSS_FAILOVERS, *KEPT_BY_KAFKA) if one.id in FAILOVERS_WHATEVER_CLIENTS_SEND]
    assert {kind.__name__ for one in alone for kind in one.subjects} <= {
        *(kind.__name__ for kind in (Group, GroupRecord)),
        "GhostState",
        "JoinResponseSent",
        "RecordedStep",
        "Loading",
    }


MUTANTS: list[tuple[Callable[..., Any], str, str, str, set[str]]] = [
    (
        group_log.load_group,
        "generation=stored.generation",
        "generation=0",
        "load",
        {"record-generation", "group-generation"},
    ),
    (group_log.load_group, "leader=stored.leader", "leader=None", "load", {"T7-exists"}),
    (group_log.load_group, "ite(early, Phase.COMPLETING, Phase.STABLE)", "Phase.STABLE", "load", {"record-leader"}),
    (group_log.member_record, "assignment=slot.assignment", "assignment=None", "sync", {"stored-assignment"}),
    (group_log.load_slot, "join=0, ", "join=1, ", "load", {"group-parked", "loaded-timers"}),
    (group_log.load_slot, "rearm(plain, context.now)", "plain", "load", {"loaded-timers"}),
    (group_log.load_group, "context.now + group_timeout(group)", "context.now", "load", {"loaded-timers"}),
    (group_log.load_record, "> context.max_group_size", ">= context.max_group_size", "load", {"loaded-timers"}),
    (group_log.load_slot, "protocols=protocols", "protocols=()", "load", {"loaded-members"}),
    (group_log.load_group, "protocol_type=stored.protocol_type", "protocol_type=None", "load", {"loaded-members"}),
    (group_log.member_record, "instance=slot.instance", "instance=None", "sync", {"stored-group"}),
    (
        group_log.member_record,
        "session_timeout=slot.session_timeout",
        "session_timeout=slot.rebalance_timeout",
        "sync",
        {"stored-group"},
    ),
    (group_log.writes_record, 'step.rule == "join.replace.stable"', "False", "join", {"stored-group"}),
    (group_log.group_record, "leader=group.leader", "leader=None", "expire-join", {"record:T7-exists"}),
    (group_log.member_record, "id=slot.id", "id=slot.instance", "expire-join", {"record:group-ids"}),
    (
        group_log.writes_record,
        "or_(settled, becomes_empty(before, after))",
        "settled",
        "expire-join",
        {"record-generation"},
    ),
    (
        group_log.writes_record,
        "or_(settled, becomes_empty(before, after))",
        "False",
        "sync",
        {"record-leader", "stored-assignment"},
    ),
]


@pytest.mark.parametrize(("function", "before", "after", "event", "broken"), MUTANTS)
def test_mutants_of_the_log_are_refuted_and_every_counterexample_replays(
    function: Callable[..., Any], before: str, after: str, event: str, broken: set[str]
) -> None:
    with mutant(function, before, after):
        verdict = prove_event(EARLY[event], ACROSS_FAILOVERS, SMALL)
        assert broken <= {one.statement.id for one in verdict.refutations}
        for refutation in verdict.refutations:
            example = decode_refutation(EARLY[event], refutation)
            assert without_free_slots(replay_handler(EARLY[event], example)) == without_free_slots(example.result)


def without_free_slots(step: Step) -> Step:
    """The step without free slots after it: a record has as many as it needs, and their number means nothing."""
    slots = tuple(slot for slot in step.group.slots if slot.holder != Holder.NOBODY)
    return replace(step, group=replace(step.group, slots=slots))


# --- Each theorem about a single step, from T19 on, is refuted of a core that breaks it.

LARGER = {"T38": ProofSize(slots=3, partitions=1, protocols=2), "T60": ProofSize(slots=2, partitions=1)}
"""What takes more than one member."""
STEP_BREAKS: dict[str, tuple[Callable[..., Any], str, str, str]] = {
    "T19": (sync.sync_completing, "sync=request.handle, ", "", "sync"),
    "T20": (member_table.rearm, "now + slot.session_timeout", "now", "commit"),
    "T21": (join_phase.complete_join, "context.now + group_timeout(group)", "context.now", "expire-join"),
    "T22": (
        join.join,
        'Step(group, refusal(request, error, request.member), "join.unknown-member")',
        'admit(group, 0, request.member, request, context, "join.pending")',
        "join",
    ),
    "T23": (sync.names_protocol, "request.protocol == group.protocol", "True", "sync"),
    "T24": (membership.commit, "renew_session(group, index, context.now)", "group", "commit"),
    "T25": (membership.leave, "left = left or rebalances", "left = True", "leave"),
    "T26": (member_table.add_member, "session_timeout=request.session_timeout", "session_timeout=0", "join"),
    "T27": (join_phase.prepare_rebalance, "join_armed=True", "join_armed=False", "join"),
    "T28": (timers.expire_member, "slot.join != 0 or slot.sync != 0", "slot.join != 0", "expire-member-0"),
    "T29": (membership.remove_entry, "pending != NOWHERE", "False", "leave"),
    "T30": (join_phase.complete_join, "is_new=False, ", "", "expire-join"),
    "T31": (join_phase.join_response, "generation=group.generation", "generation=group.generation - 1", "join"),
    "T32": (join_phase.try_complete_join, "group.phase == Phase.PREPARING and ", "", "expire-member-0"),
    "T33": (member_table.add_member, "armed=True", "armed=False", "join"),
    "T34": (sync.sync_completing, "emit(slot.sync != 0,", "emit(True,", "sync"),
    "T35": (sync.sync_stable, "unsynced=False", "unsynced=True", "sync"),
    "T36": (membership.remove_entry, "Error.NONE, noticed,", "Error.NONE, False,", "leave"),
    "T37": (sync.names_protocol, "request.protocol is None or ", "", "sync"),
    "T38": (
        protocol_selection.select_protocol,
        "all(tally >= other for other in tallies)",
        "True",
        "expire-join",
    ),
    "T39": (join.join, "if request.instance is None:", "if False:", "join"),
    "T40": (member_table.add_member, "leader=member if leads else group.leader", "leader=group.leader", "join"),
    "T41": (member_table.accepts, "joined_count(group) < limit", "True", "join"),
    "T42": (join.join, "None if known == NOWHERE else request.member", "request.member", "join"),
    "T43": (member.handle_error, "not is_current(member, sender, generation)", "False", "member-heartbeat-response"),
    "T44": (member.handle_error, "error == Error.UNKNOWN_MEMBER_ID", "False", "member-commit-response"),
    "T45": (member.leave, "member.settings.instance is None", "True", "member-leave"),
    "T46": (member.commit, "any(partitions)", "True", "member-commit"),
    "T47": (member.disconnect, "member.rejoins or member.waiting != 0", "member.rejoins", "member-disconnect"),
    "T48": (
        member.on_join_response,
        "generation=response.generation,\n        waiting",
        "waiting",
        "member-join-response",
    ),
    "T49": (member.on_commit_response, "rejoins=True", "rejoins=False", "member-commit-response"),
    "T50": (
        member.on_sync_response,
        "holds(response.assignment, part)",
        "member.owned[part] or holds(response.assignment, part)",
        "member-sync-response",
    ),
    "T51": (member.join, "not member.rejoins", "True", "member-join"),
    "T59": (member.join, "keeps and mine", "mine", "member-join"),
    "T60": (member.gets_partition, " and not claimed[partition]", "", "member-join-response"),
    "T52": (membership.commit, "group.phase == Phase.COMPLETING", "True", "commit"),
    "T53": (timers.expire_member, "clear_slot(group, index)", "group", "expire-member-0"),
    "T54": (timers.expire_join, "group.initial and has_remaining", "True and has_remaining", "expire-join"),
    "T55": (timers.expire_sync, "group.stale_unsynced", "False", "expire-sync"),
    "T56": (
        join_phase.arm_join_timer,
        "now + group_timeout(group)",
        "now + group_timeout(group) + 5_000",
        "expire-sync",
    ),
    "T57": (
        membership.heartbeat,
        'respond_to_heartbeat(alive, request, Error.NONE, "heartbeat.stable")',
        'respond_to_heartbeat(trigger_rebalance(alive, context)[0], request, Error.NONE, "heartbeat.stable")',
        "heartbeat",
    ),
    "T58": (
        membership.heartbeat,
        "respond_to_heartbeat(alive, request, Error.REBALANCE_IN_PROGRESS",
        "respond_to_heartbeat(clear_slot(alive, index), request, Error.REBALANCE_IN_PROGRESS",
        "heartbeat",
    ),
}
"""By theorem: a function, a text in it, what is there instead, and the event whose proof has to notice."""


@pytest.mark.parametrize("theorem", STEP_BREAKS)
def test_the_theorem_is_refuted_of_a_core_that_breaks_it(theorem: str) -> None:
    function, before, after, name = STEP_BREAKS[theorem]
    size = LARGER.get(theorem, TINY)
    event = next(one for one in (*coordinator_events(size.slots), *member_events()) if one.name == name)
    with mutant(function, before, after):
        refuted = {one.statement.id: one for one in prove_event(event, WHATEVER_CLIENTS_SEND, size).refutations}
        assert theorem in refuted
        example = decode_refutation(event, refuted[theorem])
        assert replay_handler(event, example) == example.result


def test_every_theorem_of_a_step_has_a_break() -> None:
    assert list(STEP_BREAKS) == [one.id for one in STEP_THEOREMS if one not in GENERATION_THEOREMS]
