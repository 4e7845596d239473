"""Heartbeats, commits and LeaveGroup: the requests with a membership, held against the knowledge of the client."""

from fencepost.model.classic.messages.parsing import read_offsets
from fencepost.traces.client_judge.classic.heartbeats import judge_clocks, note_heartbeat
from fencepost.traces.client_judge.classic.joining import describe_id, judge_instance, judge_reason
from fencepost.traces.client_judge.classic.knowledge import NO_GENERATION, Phase, Standing, has_membership
from fencepost.traces.client_judge.classic.news import RESETS, describe_partitions, generation_in
from fencepost.traces.client_judge.classic.state import ClientState, Debt
from fencepost.traces.events import Event, Operation

RESTING_MS = 1_200
"""When a member that would join again of its own accord has done so."""
PATIENCE_MS = 3_000
"""How long after its session timeout a client may take to look for the coordinator."""


def judge_heartbeat(state: ClientState, operation: Operation, event: Event) -> None:
    """A Heartbeat arrives."""
    if operation.version >= 3:
        judge_instance(state, operation)
    if is_joining(state, operation, event):
        title, expected = "Heartbeat while JoinGroup has no response", "no heartbeat"
        state.violate("HBT-04", operation, title, expected, "Heartbeat")
        return
    standing = find_standing(state, operation)
    sequence = operation.handle - 1
    if standing is None:
        judge_stale(state, operation, "HBT-02", "HBT-04")
        return
    state.evidence.hold("HBT-02", sequence)
    state.has_sign_while_waiting = True
    if standing.phase is Phase.JOINED:
        state.evidence.hold("HBT-03", sequence)
    latest = state.knowledge.latest
    if latest.requirement == "MEMBER-14" and latest.generation == standing.generation:
        state.evidence.hold("MEMBER-14", sequence)
    if state.rebalance_told is not None and event.time > state.rebalance_told + state.knowledge.grace:
        state.evidence.hold("HBT-05", sequence)
    note_sign(state, operation, event)
    judge_rest(state, operation, event)
    note_heartbeat(state, operation, event)
    judge_clocks(state, operation, event)


def judge_rest(state: ClientState, operation: Operation, event: Event) -> None:
    """A cooperative member that kept everything in a rebalance does not ask for another one."""
    exchange = state.exchange
    if not state.is_cooperative or exchange is None or state.rounds < 2 or state.given_up:
        return
    if exchange.is_synced and event.time - exchange.time > RESTING_MS and state.rebalance_told is None:
        state.evidence.hold("COOP-05", event.sequence)


def judge_commit(state: ClientState, operation: Operation, event: Event) -> None:
    """An OffsetCommit of the group arrives."""
    application = state.application
    if state.join is None or (application is not None and application.has_ended):
        return  # an application without a subscription
    if operation.version >= 7 and operation.body["member_id"]:
        judge_instance(state, operation)
    if is_joining(state, operation, event):
        title, expected = "OffsetCommit while JoinGroup has no response", "no commit"
        state.violate("MCOMMIT-08", operation, title, expected, "OffsetCommit")
        return
    open_one = state.exchange_outstanding()
    if open_one is not None and open_one.connection == operation.connection:
        title, expected = "OffsetCommit while SyncGroup has no response", "no commit"
        state.violate("MCOMMIT-08", operation, title, expected, "OffsetCommit")
        return
    standing = find_standing(state, operation)
    if standing is None:
        judge_stale(state, operation, "MCOMMIT-03", "MCOMMIT-11")
        return
    state.evidence.hold("MCOMMIT-03", operation.handle - 1)
    committed = frozenset(partition for partition, _ in read_offsets(operation.body, state.topic_names))
    allowed = state.knowledge.allowed_partitions() | standing.assignment | state.given_up
    title, expected = "The commit covers partitions that are not assigned", describe_partitions(allowed)
    state.check(committed <= allowed, "MCOMMIT-18", operation, title, expected, describe_partitions(committed))
    note_sign(state, operation, event)


def note_lookup(state: ClientState, operation: Operation) -> None:
    """A FindCoordinator arrives."""
    if state.moved is not None:
        state.evidence.hold("MEMBER-39", operation.handle - 1)
    state.moved, state.looked_at = None, operation.handle


def judge_former_coordinator(state: ClientState, operation: Operation, awake_until: int) -> None:
    """A request of the group arrives: a client that has certainly read that another node coordinates has looked for
    that."""
    told = state.moved
    if told is not None and told.time + state.knowledge.grace < awake_until:
        title, expected = "A request to the former coordinator", "FindCoordinator first"
        observed = f"{operation.api} {operation.sent_at - told.time} ms after {told.api} got NOT_COORDINATOR"
        state.violate("MEMBER-39", operation, title, expected, observed)
        state.moved = None


def judge_leave(state: ClientState, operation: Operation, event: Event) -> None:
    """A LeaveGroup arrives: from now on the client is in no group."""
    state.left = operation
    if state.instance is not None:
        title, expected = "A static member leaves by itself", "no LeaveGroup"
        state.violate("MEMBER-23", operation, title, expected, "LeaveGroup")
    for row in operation.body.get("members") or ():
        if row.get("reason"):
            judge_reason(state, operation, row["reason"])
    if state.exchange is not None:
        state.exchange.is_excused = True
    state.forgive("JoinGroup")
    state.last_sign = state.installed = None
    standing = Standing(None, news="it left the group", sequence=event.sequence, time=event.time)
    state.knowledge.learn(standing)
    state.knowledge.show(event.sequence)


def is_joining(state: ClientState, operation: Operation, event: Event) -> bool:
    """Whether the request was certainly sent after a JoinGroup that has no response."""
    open_one = state.exchange_outstanding()
    if open_one is None or open_one.api != "JoinGroup":
        return False
    return open_one.connection == operation.connection or open_one.sent_at + state.knowledge.grace < event.time


def find_standing(state: ClientState, operation: Operation) -> Standing | None:
    """The standing by which the client sent the request; all news before that has arrived."""
    member_id, generation = operation.body["member_id"], generation_in(operation)
    found = state.knowledge.find(member_id, generation)
    if found is not None:
        same = (one for one in state.knowledge.standings if has_membership(one, member_id, generation))
        state.knowledge.show(next(same).sequence)
    return found


def judge_stale(state: ClientState, operation: Operation, stale: str, memberless: str) -> None:
    """A request carries a membership that the client does not have: `stale` is broken if it has another one,
    `memberless` if it has none, or what says that it has none any more."""
    knowledge = state.knowledge
    certain = knowledge.standings[0]
    sent = operation.body["member_id"], generation_in(operation)
    observed = f"{operation.api} of generation {sent[1]} as {describe_id(sent[0])}"
    requirement = stale
    if sent[1] == NO_GENERATION or all(each.generation == NO_GENERATION for each in knowledge.standings):
        has_kept = operation.api == "Heartbeat" and certain.requirement in RESETS
        has_kept &= sent[1] != NO_GENERATION
        requirement = certain.requirement if has_kept else memberless
        expected = f"no {operation.api}: it has no generation"
    else:
        current = next(each for each in reversed(knowledge.standings) if each.generation != NO_GENERATION)
        expected = f"generation {current.generation} as {describe_id(current.member_id)}"
        expected += f", or no {operation.api}" if current is not knowledge.latest else ""
    title = f"{operation.api} of a membership that is over" if knowledge.had(*sent) else f"{operation.api} of nobody"
    state.violate(requirement, operation, title, expected, observed, knowledge.latest.news)


def unheard_heartbeat(state: ClientState, time: int, milliseconds: int) -> Operation | None:
    """A heartbeat that has had no response for so long, None if there is none."""
    waiting = (each for each in state.outstanding.values() if each.api == "Heartbeat")
    return next((each for each in waiting if time - each.sent_at > milliseconds), None)


def judge_lookup(state: ClientState, operation: Operation, event: Event) -> None:
    """A client whose heartbeats have no response looks for the coordinator again."""
    judge_clocks(state, operation, event)
    state.pay("FindCoordinator", event.sequence)
    if state.session_timeout and unheard_heartbeat(state, event.time, state.session_timeout // 2) is not None:
        state.evidence.hold("HBT-11", event.sequence)


def doubt_assignment(state: ClientState, event: Event) -> None:
    """A connection ends: the response to SyncGroup that left on it a moment ago, and that the application has not been
    told of, may never be read."""
    latest, application = state.knowledge.latest, state.application
    is_told = application is None or not application.assignments
    if is_told or latest.phase is not Phase.STABLE or event.connection != state.coordinator_connection:
        return
    if event.time - latest.time <= state.knowledge.grace:
        state.installed, state.is_installed_doubtful = None, True


def note_loss(state: ClientState, operation: Operation, event: Event) -> None:
    """The connection of a heartbeat ends that has had no response for long: the client looks for the coordinator."""
    waited = event.time - operation.sent_at
    is_member = state.last_sign is not None and not state.is_ending
    if operation.api == "Heartbeat" and is_member and waited > state.session_timeout // 2 > 0:
        news = f"a Heartbeat had no response for {waited} ms"
        state.owe(Debt("HBT-11", "FindCoordinator", event.time, event.sequence, news))


def judge_unheard(state: ClientState, time: int) -> None:
    """A client has not waited for the response to a heartbeat for much longer than its session timeout."""
    unheard = unheard_heartbeat(state, time, state.session_timeout + PATIENCE_MS)
    if unheard is not None:
        title, expected = "A client whose heartbeats have no response waits", "FindCoordinator"
        observed = f"none for {time - unheard.sent_at} ms"
        state.violate("HBT-11", unheard, title, expected, observed)


def note_sign(state: ClientState, operation: Operation, event: Event) -> None:
    """The coordinator sees a sign of life of a stable member."""
    if state.last_sign is None:
        return
    if operation.api == "Heartbeat":
        judge_gap(state, operation, event.time)
    state.last_sign = event.time


def judge_gap(state: ClientState, operation: Operation, time: int) -> None:
    """No more than a session timeout has passed since the last sign of life."""
    if state.last_sign is None or not state.session_timeout:
        return
    waiting = (each for each in state.outstanding.values() if each.api in ("Heartbeat", "FindCoordinator"))
    if any(time - each.sent_at > state.session_timeout // 2 for each in waiting):
        return  # the next one waits for its response, or for the coordinator to be found
    application = state.application
    if application is not None and application.held_up is not None and application.held_up[1] > state.last_sign:
        return
    gap, allowed = time - state.last_sign, state.session_timeout + state.knowledge.grace
    requirement = "HBT-01" if state.rebalance_told is None else "HBT-05"
    title, expected = "Heartbeats are too rare", f"one in {state.session_timeout} ms"
    if gap > allowed:
        state.violate(requirement, operation, title, expected, f"none for {gap} ms", state.knowledge.latest.news)
    elif requirement == "HBT-01":
        state.evidence.hold(requirement, operation.handle - 1)


def judge_silence(state: ClientState, time: int) -> None:
    """A stable member has not been silent for too long when the trace ends."""
    assert state.join is not None
    allowed = state.session_timeout + state.knowledge.grace
    if state.last_sign is not None and time - state.last_sign > allowed:
        judge_gap(state, state.join, time)
