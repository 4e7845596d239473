"""Polls and fetches of a driven client, held against its buffers (KIP-41)."""

from collections.abc import Mapping

from fencepost.model.assignors.group import TopicPartition
from fencepost.traces.client_judge.classic.application import Application, check_event
from fencepost.traces.client_judge.classic.buffers import MANY_POLLS, Buffers
from fencepost.traces.client_judge.classic.heartbeats import has_no_coordinator
from fencepost.traces.client_judge.classic.knowledge import Phase
from fencepost.traces.client_judge.classic.news import describe_partitions
from fencepost.traces.client_judge.classic.state import POSITION_APIS, ClientState
from fencepost.traces.client_judge.evidence import build_violation
from fencepost.traces.events import Event, Operation
from fencepost.traces.verdict import Violation

LONG_POLL_MS = 2_000
"""A poll that may take as long shows whether it waits."""
PROMPT_MS = 1_000
"""How long a poll with buffered records may take."""
CHANGES = frozenset({"seek", "pause", "resume"})
"""Commands that change what is fetched."""
EMPTY_MS = 3_000
"""How long a partition may stay without a fetch at least."""
MAX_WAIT_MS = 1_000
"""How long a Fetch may wait for records at most."""
IDLE_MS = 1_000
"""How long an application has to do nothing for a fetch to be seen that does not wait for the next poll."""


def learn_delivery(state: ClientState, application: Application, event: Event) -> None:
    """A Fetch response with records leaves."""
    ends = {read_partition(name): end for name, end in event.body["ends"].items()}
    if application.command is not None and application.command["do"] in CHANGES:
        state.buffers.doubt(application, ends)  # a client may give up its fetches then
        return
    failed = frozenset(map(read_partition, event.body["errors"]))
    for partition, end in ends.items():
        is_wanted = partition in state.buffers.asked  # else it was sought or lost since the fetch (POLL-11)
        if partition in application.owned and is_wanted:
            state.buffers.deliver(application, partition, end, event.time)
            if failed:
                state.buffers.beside_error.add(partition)
            else:
                state.buffers.beside_error.discard(partition)


def is_in_part(state: ClientState, event: Event) -> bool:
    """Whether a Fetch response has records of some partitions that its node leads for the client, and not of others."""
    ends = set(map(read_partition, event.body["ends"]))
    nodes = {state.leaders.get(partition) for partition in ends}
    return len(ends) < sum(state.leaders.get(partition) in nodes for partition in state.installed or ())


def read_partition(name: str) -> TopicPartition:
    """The partition with this name in an annotation."""
    topic, _, number = name.rpartition("/")
    return topic, int(number)


def is_quiet(state: ClientState) -> bool:
    """Whether the client is stable, has called back, and was told of nothing that disturbs its buffers."""
    application = state.application
    is_told = state.rebalance_told is not None or state.growth is not None or bool(state.debts)
    is_stable = state.knowledge.latest.phase is Phase.STABLE and state.exchange_outstanding() is None
    if not is_stable or is_told:
        return False
    return application is not None and not application.assignments


def begin_poll(state: ClientState, application: Application, event: Event) -> None:
    """The application polls."""
    buffers = state.buffers
    idle = 0 if application.idle_since is None else event.time - application.idle_since
    if buffers.emptied and idle >= IDLE_MS and is_quiet(state):
        judge_prefetch(state, event)
    buffers.emptied = frozenset()
    if not is_quiet(state):
        buffers.forget()
    buffers.begin_poll(application, event.time)


def judge_prefetch(state: ClientState, event: Event) -> None:
    """The partitions that the last poll has emptied are fetched by now."""
    buffers = state.buffers
    fetched = {each for each in buffers.emptied if buffers.asked.get(each, -1) >= buffers.ends.get(each, 0)}
    title, expected = "No fetch is sent before the next poll", "a fetch of a partition that is empty"
    observed = f"none of {describe_partitions(buffers.emptied)}"
    check_event(state.evidence, bool(fetched), "PREFETCH-07", event, title, expected, observed)


def end_poll(state: ClientState, application: Application, event: Event) -> None:
    """A poll is over."""
    buffers, evidence = state.buffers, state.evidence
    if not is_quiet(state):
        buffers.forget()
        return
    if "error" in event.body:
        buffers.waits.clear()
        buffers.stopped_at = buffers.left = buffers.emptied = frozenset()
        return
    judge_fullness(state, application, event)
    command = application.command or {}
    if command.get("ms", 0) >= LONG_POLL_MS and buffers.begun:
        took = event.time - application.began
        title, expected = "A poll waits though records are buffered", f"less than {PROMPT_MS} ms"
        check_event(evidence, took < PROMPT_MS, "POLL-15", event, title, expected, f"{took} ms")
    if application.returned:
        judge_place(state, application, event)
    judge_waits(state, application, event)
    note_rest(buffers, application)
    judge_empty(state, application, event)


def judge_fullness(state: ClientState, application: Application, event: Event) -> None:
    """A poll returns what is buffered, as much as it may."""
    buffers = state.buffers
    if not application.limit or not buffers.begun:
        return
    wanted = min(application.limit, sum(buffers.begun.values()))
    title, expected = "A poll returns less than is buffered", f"{wanted} records"
    is_full = application.returned >= wanted
    check_event(state.evidence, is_full, "POLL-04", event, title, expected, f"{application.returned} records")


def judge_place(state: ClientState, application: Application, event: Event) -> None:
    """A poll returns something of what the last one has left: where it stopped, or of what it had not come to."""
    buffers, returned = state.buffers, frozenset(state.buffers.returned)
    if not buffers.left:
        return
    title, expected = "A poll begins anew", f"some of {describe_partitions(buffers.left | buffers.stopped_at)}"
    is_on = bool(returned & (buffers.left | buffers.stopped_at))
    if is_on or returned <= buffers.ends.keys():  # else it may have stopped at what is not known to be there
        check_event(state.evidence, is_on, "POLL-08", event, title, expected, describe_partitions(returned))
    buffers.resumes |= bool(returned & buffers.stopped_at)


def judge_waits(state: ClientState, application: Application, event: Event) -> None:
    """The partitions with buffered records are served in time."""
    buffers = state.buffers
    served = set(buffers.returned)
    for partition in served & buffers.waits.keys():
        wait = buffers.waits.pop(partition)
        if wait.polls or wait.ahead:
            for requirement in ("POLL-05", "POLL-07" if wait.is_refilled else "POLL-06"):
                state.evidence.hold(requirement, event.sequence)
    for partition, wait in tuple(buffers.waits.items()):
        if not application.limit or partition not in buffers.begun:
            continue
        wait.polls += bool(application.returned)
        wait.empty_polls += not application.returned
        wait.passed += application.returned
        bound = buffers.bound(application, partition)
        if buffers.is_starving(application, partition):
            requirement = "POLL-07" if wait.is_refilled else "POLL-06"
            violation = starving(requirement, partition, event, bound, wait.polls)
            state.evidence.violate(violation)
            buffers.starved = True


def starving(requirement: str, partition: TopicPartition, event: Event, bound: int, polls: int) -> Violation:
    """A partition waits for longer than any rule allows."""
    title = "A partition with buffered records is not served"
    name = describe_partitions({partition})
    return build_violation(
        requirement, event.sequence, title, f"{name} within {bound} polls", f"{name} waits for {polls} polls and more"
    )


def note_rest(buffers: Buffers, application: Application) -> None:
    """Note what the poll has left, for the next one."""
    held = {each for each in buffers.ends if buffers.held(application, each)}
    visited = frozenset(buffers.returned)
    is_full = bool(application.limit) and application.returned == application.limit
    buffers.stopped_at = visited & frozenset(held)
    buffers.left = frozenset(held - visited) if is_full else frozenset()
    buffers.partly |= visited & held
    buffers.emptied = frozenset(each for each in visited & buffers.ends.keys() if each not in held)


def judge_empty(state: ClientState, application: Application, event: Event) -> None:
    """A partition of which nothing is buffered is fetched after some polls."""
    buffers = state.buffers
    fetches = [each for each in state.outstanding.values() if each.api == "Fetch"]
    open_ones = {each for fetch in fetches for each in offsets_of(fetch)}
    if any(event.time - fetch.sent_at > MAX_WAIT_MS for fetch in fetches):
        buffers.empty_since.clear()  # a client may send no other fetch before the response to that
        return
    is_cut_off = has_no_coordinator(state, event.time) or state.is_backing_off(event.time)
    is_cut_off |= any(each.api in POSITION_APIS for each in state.outstanding.values())
    metadata = (each for each in state.outstanding.values() if each.api == "Metadata")
    is_cut_off |= any(event.time - each.sent_at > MAX_WAIT_MS for each in metadata)
    for partition in application.owned:
        is_unknown = is_cut_off and partition not in buffers.asked  # its position is, or its leader
        is_fetched = partition in open_ones or partition in application.paused
        if is_fetched or is_unknown or buffers.held(application, partition):
            buffers.empty_since.pop(partition, None)
            continue
        since, polls, most = buffers.empty_since.get(partition, (event.time, 0, 0))
        # A client may drain first what it has from the same broker: Apache Kafka's does (KAFKA-17182).
        bound = max(most, buffers.most_to_drain(application) // max(application.limit, 1) + MANY_POLLS)
        buffers.empty_since[partition] = since, polls + 1, bound
        if polls > bound and event.time - since > EMPTY_MS:
            title, name = "An empty partition is not fetched", describe_partitions({partition})
            observed = f"none of {name} in {polls} polls and {event.time - since} ms"
            violation = build_violation("PREFETCH-03", event.sequence, title, f"Fetch of {name}", observed)
            state.evidence.violate(violation)


def offsets_of(fetch: Operation) -> Mapping[TopicPartition, int]:
    """The offsets that a Fetch asks for."""
    return {
        (topic["topic"], row["partition"]): row["fetch_offset"]
        for topic in fetch.body.get("topics") or ()
        for row in topic["partitions"]
    }


def judge_fetched_offsets(state: ClientState, application: Application, operation: Operation) -> None:
    """A Fetch arrives: it asks for what was not sent yet."""
    buffers, evidence, sequence = state.buffers, state.evidence, operation.handle - 1
    for partition, offset in offsets_of(operation).items():
        if buffers.empty_since.pop(partition, None) is not None or partition in application.owned:
            evidence.hold("PREFETCH-03", sequence)
        end = buffers.ends.get(partition)
        if end is None and partition in application.sought and offset != application.next_of(partition):
            continue  # it waited for its connection while the partition was sought, and nobody waits for its response
        buffers.asked[partition] = offset
        if end is None or not is_quiet(state) or partition in application.paused:
            continue
        held = buffers.held(application, partition)
        if held > max(application.limit, 1):
            buffers.fetches_retained = True
        if held and offset < end:
            judge_second_fetch(state, application, operation, partition, offset)
        elif partition in buffers.partly:
            evidence.hold("PREFETCH-04", sequence)
            evidence.hold("POLL-02", sequence)
            buffers.partly.discard(partition)
        if partition in buffers.beside_error and offset >= end:
            evidence.hold("POLL-14", sequence)


def judge_second_fetch(
    state: ClientState, application: Application, operation: Operation, partition: TopicPartition, offset: int
) -> None:
    """Records are fetched that have come already: they were thrown away, or will come twice."""
    buffers, end = state.buffers, state.buffers.ends[partition]
    is_thrown = offset <= application.next_of(partition)
    requirement = "POLL-02" if is_thrown else "PREFETCH-04"
    if is_thrown and partition in buffers.beside_error:
        requirement = "POLL-14"
    title, name = "Records are fetched a second time", describe_partitions({partition})
    expected = f"{name} from {end} on, or no fetch"
    state.violate(requirement, operation, title, expected, f"{name} from {offset} on")
    buffers.forget([partition])
    buffers.asked[partition] = offset


def judge_end_of_draining(state: ClientState, application: Application) -> None:
    """The trace ends."""
    buffers = state.buffers
    for partition, wait in buffers.waits.items():
        bound = buffers.bound(application, partition)
        if application.limit and buffers.is_starving(application, partition) and partition in application.owned:
            violation = build_violation(
                "POLL-05",
                0,
                "A partition with buffered records is never served",
                f"{describe_partitions({partition})} within {bound} polls",
                f"it has waited for {wait.polls} polls",
            )
            state.evidence.violate(violation)
    if buffers.resumes:
        title, expected = "Fetches of retained partitions starve others", "no fetch of what is retained"
        observed = "a partition was not served, and retained ones were fetched"
        is_wrong = buffers.fetches_retained and buffers.starved
        state.evidence.judge(not is_wrong, build_violation("PREFETCH-09", 0, title, expected, observed))
