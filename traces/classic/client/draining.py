"""Polls and fetches of a driven client, held against its buffers (KIP-41)."""

from dataclasses import dataclass, field

from fencepost.model.assignors.group import TopicPartition
from fencepost.traces.classic.client.application import MANY_POLLS, Application, Buffers, check_event
from fencepost.traces.classic.client.messages import (
    describe_partitions,
    fetch_offsets,
    fetched_partitions,
    out_of_range,
    read_partition,
)
from fencepost.traces.classic.client.news import has_no_coordinator
from fencepost.traces.classic.client.records import fetches_outstanding
from fencepost.traces.classic.client.view import POSITION_APIS, ClientView, Phase
from fencepost.traces.client_judge.judge import build_violation
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


def learn_delivery(view: ClientView, application: Application, event: Event) -> None:
    """A Fetch response with records leaves."""
    ends = {read_partition(name): end for name, end in event.body["ends"].items()}
    if application.command is not None and application.command["do"] in CHANGES:
        view.buffers.doubt(application, ends)  # a client may give up its fetches then
        return
    failed = frozenset(map(read_partition, event.body["errors"]))
    for partition, end in ends.items():
        is_wanted = partition in view.buffers.asked  # else it was sought or lost since the fetch (POLL-11)
        if partition in application.owned and is_wanted:
            view.buffers.deliver(application, partition, end, event.time)
            if failed:
                view.buffers.beside_error.add(partition)
            else:
                view.buffers.beside_error.discard(partition)


def is_quiet(view: ClientView) -> bool:
    """Whether the client is stable, has called back, and was told of nothing that disturbs its buffers."""
    application = view.application
    is_told = view.rebalance_told is not None or view.growth is not None or bool(view.debts)
    is_stable = view.knowledge.latest.phase is Phase.STABLE and view.exchange_outstanding() is None
    if not is_stable or is_told:
        return False
    return application.is_driven and not application.assignments


def begin_poll(view: ClientView, application: Application, event: Event) -> None:
    """The application polls."""
    buffers = view.buffers
    idle = 0 if application.idle_since is None else event.time - application.idle_since
    if buffers.emptied and idle >= IDLE_MS and is_quiet(view):
        judge_prefetch(view, event)
    buffers.emptied = frozenset()
    if not is_quiet(view):
        buffers.forget()
    buffers.begin_poll(application, event.time - view.knowledge.grace)


def judge_prefetch(view: ClientView, event: Event) -> None:
    """The partitions that the last poll has emptied are fetched by now."""
    buffers = view.buffers
    fetched = {each for each in buffers.emptied if buffers.asked.get(each, -1) >= buffers.ends.get(each, 0)}
    title, expected = "No fetch is sent before the next poll", "a fetch of a partition that is empty"
    observed = f"none of {describe_partitions(buffers.emptied)}"
    check_event(view.evidence, bool(fetched), "PREFETCH-07", event, title, expected, observed)


def end_poll(view: ClientView, application: Application, event: Event) -> None:
    """A poll is over."""
    buffers, evidence = view.buffers, view.evidence
    if not is_quiet(view):
        buffers.forget()
        return
    if "error" in event.body:
        buffers.waits.clear()
        buffers.stopped_at = buffers.left = buffers.emptied = frozenset()
        return
    judge_fullness(view, application, event)
    command = application.command or {}
    if command.get("ms", 0) >= LONG_POLL_MS and buffers.begun:
        took = event.time - application.began
        title, expected = "A poll waits though records are buffered", f"less than {PROMPT_MS} ms"
        check_event(evidence, took < PROMPT_MS, "POLL-15", event, title, expected, f"{took} ms")
    if application.returned:
        judge_place(view, application, event)
    judge_waits(view, application, event)
    note_rest(buffers, application)
    judge_empty(view, application, event)


def judge_fullness(view: ClientView, application: Application, event: Event) -> None:
    """A poll returns what is buffered, as much as it may."""
    buffers = view.buffers
    if not application.limit or not buffers.begun:
        return
    wanted = min(application.limit, sum(buffers.begun.values()))
    title, expected = "A poll returns less than is buffered", f"{wanted} records"
    is_full = application.returned >= wanted
    check_event(view.evidence, is_full, "POLL-04", event, title, expected, f"{application.returned} records")


def judge_place(view: ClientView, application: Application, event: Event) -> None:
    """A poll returns something of what the last one has left: where it stopped, or of what it had not come to."""
    buffers, returned = view.buffers, frozenset(view.buffers.returned)
    if not buffers.left:
        return
    title, expected = "A poll begins anew", f"some of {describe_partitions(buffers.left | buffers.stopped_at)}"
    is_on = bool(returned & (buffers.left | buffers.stopped_at))
    if is_on or returned <= buffers.ends.keys():  # else it may have stopped at what is not known to be there
        check_event(view.evidence, is_on, "POLL-08", event, title, expected, describe_partitions(returned))
    buffers.resumes |= bool(returned & buffers.stopped_at)


def judge_waits(view: ClientView, application: Application, event: Event) -> None:
    """The partitions with buffered records are served in time."""
    buffers = view.buffers
    served = set(buffers.returned)
    for partition in served & buffers.waits.keys():
        wait = buffers.waits.pop(partition)
        if wait.polls or wait.ahead:
            for requirement in ("POLL-05", "POLL-07" if wait.is_refilled else "POLL-06"):
                view.evidence.hold(requirement, event.sequence)
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
            view.evidence.violate(violation)
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
    held = {each for each in buffers.ends if buffers.build_pass(application, each)}
    visited = frozenset(buffers.returned)
    is_full = bool(application.limit) and application.returned == application.limit
    buffers.stopped_at = visited & frozenset(held)
    buffers.left = frozenset(held - visited) if is_full else frozenset()
    buffers.partly |= visited & held
    buffers.emptied = frozenset(each for each in visited & buffers.ends.keys() if each not in held)


def judge_empty(view: ClientView, application: Application, event: Event) -> None:
    """A partition of which nothing is buffered is fetched after some polls."""
    buffers = view.buffers
    fetches = [each for each in view.outstanding.values() if each.api == "Fetch"]
    open_ones = {each for fetch in fetches for each, _ in fetch_offsets(fetch.body, view.topic_names)}
    if any(event.time - fetch.sent_at > MAX_WAIT_MS for fetch in fetches):
        buffers.empty_since.clear()  # a client may send no other fetch before the response to that
        return
    is_cut_off = has_no_coordinator(view, event.time) or view.is_backing_off(event.time)
    is_cut_off |= any(each.api in POSITION_APIS for each in view.outstanding.values())
    metadata = (each for each in view.outstanding.values() if each.api == "Metadata")
    is_cut_off |= any(event.time - each.sent_at > MAX_WAIT_MS for each in metadata)
    for partition in application.owned:
        is_unknown = is_cut_off and partition not in buffers.asked  # its position is, or its leader
        is_fetched = partition in open_ones or partition in application.paused
        if is_fetched or is_unknown or buffers.build_pass(application, partition):
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
            view.evidence.violate(violation)


def judge_fetched_offsets(view: ClientView, application: Application, operation: Operation) -> None:
    """A Fetch arrives: it asks for what was not sent yet."""
    buffers, evidence, sequence = view.buffers, view.evidence, operation.handle - 1
    for partition, offset in fetch_offsets(operation.body, view.topic_names):
        if buffers.empty_since.pop(partition, None) is not None or partition in application.owned:
            evidence.hold("PREFETCH-03", sequence)
        end = buffers.ends.get(partition)
        if end is None and partition in application.sought and offset != application.next_of(partition):
            continue  # it waited for its connection while the partition was sought, and nobody waits for its response
        buffers.asked[partition] = offset
        if end is None or not is_quiet(view) or partition in application.paused:
            continue
        held = buffers.build_pass(application, partition)
        if held > max(application.limit, 1):
            buffers.fetches_retained = True
        if held and offset < end:
            judge_second_fetch(view, application, operation, partition, offset)
        elif partition in buffers.partly:
            evidence.hold("PREFETCH-04", sequence)
            evidence.hold("POLL-02", sequence)
            buffers.partly.discard(partition)
        if partition in buffers.beside_error and offset >= end:
            evidence.hold("POLL-14", sequence)


def judge_second_fetch(
    view: ClientView, application: Application, operation: Operation, partition: TopicPartition, offset: int
) -> None:
    """Records are fetched that have come already: they were thrown away, or will come twice."""
    buffers, end = view.buffers, view.buffers.ends[partition]
    is_thrown = offset <= application.next_of(partition)
    requirement = "POLL-02" if is_thrown else "PREFETCH-04"
    if is_thrown and partition in buffers.beside_error:
        requirement = "POLL-14"
    title, name = "Records are fetched a second time", describe_partitions({partition})
    expected = f"{name} from {end} on, or no fetch"
    view.violate(requirement, operation, title, expected, f"{name} from {offset} on")
    buffers.forget([partition])
    buffers.asked[partition] = offset


def judge_end_of_draining(view: ClientView, application: Application) -> None:
    """The trace ends."""
    buffers = view.buffers
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
            view.evidence.violate(violation)
    if buffers.resumes:
        title, expected = "Fetches of retained partitions starve others", "no fetch of what is retained"
        observed = "a partition was not served, and retained ones were fetched"
        is_wrong = buffers.fetches_retained and buffers.starved
        view.evidence.judge(not is_wrong, build_violation("PREFETCH-09", 0, title, expected, observed))


# --- Whether a client gets on: it asks for the records of every partition that it has, and returns them.

PROGRESS_MS = 6_000
"""How long a client may take to ask for the records of a partition, or to return what is there."""
WAITING_MS = 2_000
"""A request that waits longer for its response may hold up everything else."""


@dataclass(slots=True)
class Progress:
    """What a client has asked for. Times in milliseconds."""

    fetched_at: dict[TopicPartition, int] = field(default_factory=dict)
    """When a partition was in a Fetch last."""
    stable_since: int | None = None
    """When the last assignment came, None while the client joins."""
    written_at: int = 0
    returned_at: int = 0
    """When a poll returned records last."""
    out_of_range: set[TopicPartition] = field(default_factory=set)
    """Partitions at whose position there is nothing to fetch."""


def follow_request(view: ClientView, progress: Progress, operation: Operation, event: Event) -> None:
    """A request arrives; the state is that before it."""
    if operation.api == "Fetch":
        progress.fetched_at |= dict.fromkeys(fetched_partitions(operation, view.topic_names), event.time)
    elif operation.api == "JoinGroup":
        progress.stable_since = None


def follow_response(view: ClientView, progress: Progress, operation: Operation, event: Event) -> None:
    """A response leaves the cluster; the state is that after it."""
    error = event.body.get("error_code", 0)
    if operation.api == "SyncGroup" and not error:
        progress.stable_since = event.time
    elif operation.api == "Fetch":
        for partition in out_of_range(event, view.topic_names):
            progress.out_of_range.add(partition)
            view.application.positions.pop(partition, None)  # it begins where the reset policy says
            view.application.out_of_range.add(partition)
            view.application.sought.discard(partition)


def judge_progress(view: ClientView, progress: Progress, time: int) -> None:
    """The trace ends, or the client is asked to: it has been at work until then."""
    end = time if view.asked_to_end is None else view.asked_to_end
    judge_manual_progress(view, progress, end)
    since, installed = progress.stable_since, view.installed
    if since is None or not installed or end - since <= PROGRESS_MS + view.knowledge.grace or is_held_up(view, end):
        return
    wanted = installed - view.application.paused - progress.out_of_range - fetches_outstanding(view)
    wanted -= led_by_silent_nodes(view, installed, end)
    idle = sorted(
        each for each in wanted - held_partitions(view) if progress.fetched_at.get(each, since) < end - PROGRESS_MS
    )
    sequence = view.join.handle - 1 if view.join is not None else 0
    told = describe_partitions(idle)
    title, expected = "A partition is not fetched", f"a Fetch of each partition within {PROGRESS_MS} ms"
    violation = build_violation("PREFETCH-03", sequence, title, expected, f"none of {told}")
    view.evidence.judge(not idle, violation)
    judge_returned(view, progress, wanted, end, sequence)


def judge_manual_progress(view: ClientView, progress: Progress, end: int) -> None:
    """A client whose application has assigned its partitions fetches each of them, unless something holds it up."""
    application = view.application
    if application.manual_since is None or not application.owned:
        return
    since, idle_since = application.manual_since, application.idle_since
    is_idle = application.has_failed_poll or (idle_since is not None and end - idle_since > WAITING_MS)
    is_waiting = any(end - each.sent_at > WAITING_MS for each in view.outstanding.values() if each.api != "Fetch")
    if end - since <= PROGRESS_MS or is_idle or is_waiting or is_cut_off(view, end):
        return
    wanted = application.owned - application.paused - progress.out_of_range - fetches_outstanding(view)
    idle = sorted(each for each in wanted if progress.fetched_at.get(each, since) < end - PROGRESS_MS)
    title, expected = "A partition is not fetched", f"a Fetch of each partition within {PROGRESS_MS} ms"
    sequence, observed = application.command_sequence, f"none of {describe_partitions(idle)}"
    view.evidence.judge(not idle, build_violation("PREFETCH-03", sequence, title, expected, observed))


def held_partitions(view: ClientView) -> frozenset[TopicPartition]:
    """The partitions of which a driven client has records buffered: they are fetched once these are returned."""
    buffers = view.buffers
    return frozenset(each for each in buffers.ends if buffers.build_pass(view.application, each))


def led_by_silent_nodes(view: ClientView, installed: frozenset[TopicPartition], end: int) -> frozenset[TopicPartition]:
    """The partitions whose leader, as Metadata told it, owes the response to a Fetch for long; a Fetch to one leader
    holds no other up."""
    late = (each for each in view.outstanding.values() if each.api == "Fetch" and end - each.sent_at > WAITING_MS)
    silent = {
        view.leaders.get(partition) for fetch in late for partition in fetched_partitions(fetch, view.topic_names)
    }
    is_known = None not in silent and installed <= view.leaders.keys()
    return frozenset(each for each in installed if silent and (not is_known or view.leaders[each] in silent))


def is_cut_off(view: ClientView, end: int) -> bool:
    """Whether the client cannot find its coordinator, or has not had the time to go on since, or OffsetFetch has
    failed."""
    rhythm = view.rhythm
    is_found_late = rhythm.found_at is not None and end - rhythm.found_at <= PROGRESS_MS
    return rhythm.lost_since is not None or is_found_late or view.is_backing_off(end)


def is_held_up(view: ClientView, end: int) -> bool:
    """Whether something keeps the client from its work: it joins, it waits for a response, it has just found its
    coordinator, it is not polled, polls fail, or its subscription is over."""
    if any(each.phase is not Phase.STABLE for each in view.knowledge.standings) or view.rebalance_told is not None:
        return True
    if is_cut_off(view, end):
        return True
    if any(end - each.sent_at > WAITING_MS for each in view.outstanding.values() if each.api != "Fetch"):
        return True
    application = view.application
    if application.has_failed_poll or application.has_ended:
        return True
    idle_since = application.idle_since
    return idle_since is not None and end - idle_since > WAITING_MS


def judge_returned(
    view: ClientView, progress: Progress, wanted: frozenset[TopicPartition], end: int, sequence: int
) -> None:
    """The application has got what was there for long enough. As long as polls return what they may, their number says
    whether a partition waits for too long."""
    application = view.application
    if not application.is_driven or application.wanted is not None or end - progress.written_at <= PROGRESS_MS:
        return
    if application.limit and end - progress.returned_at <= PROGRESS_MS:
        return
    known = {each for each in wanted & application.owned if each in application.positions}
    left = sorted(each for each in known if application.positions[each] < view.ends.get(each, 0))
    title, expected = "Records are not returned", f"what is there for {PROGRESS_MS} ms"
    violation = build_violation(
        "POLL-05", sequence, title, expected, f"records are left of {describe_partitions(left)}"
    )
    view.evidence.judge(not left, violation)
