"""Whether a client gets on: it asks for the records of every partition that it has, and returns them.

And where it begins: by the reset policy only where it was told that nothing is committed.
"""

from dataclasses import dataclass, field

from fencepost.model.assignors.group import TopicPartition
from fencepost.model.classic.messages.parsing import read_offsets, topic_of
from fencepost.model.errors import Error
from fencepost.traces.client_judge.classic.knowledge import NO_GENERATION, Phase
from fencepost.traces.client_judge.classic.news import describe_partitions, generation_in
from fencepost.traces.client_judge.classic.reading import fetched_partitions, fetches_outstanding
from fencepost.traces.client_judge.classic.state import ClientState
from fencepost.traces.client_judge.evidence import build_violation
from fencepost.traces.events import Event, Operation

PROGRESS_MS = 6_000
"""How long a client may take to ask for the records of a partition, or to return what is there."""
WAITING_MS = 2_000
"""A request that waits longer for its response may hold up everything else."""
EAGER_ASSIGNORS = frozenset({"range", "roundrobin", "sticky"})
"""The assignors with well-known names under which a member gives everything up when it joins."""
RESET_TIMESTAMPS = frozenset({-1, -2})
"""The latest and the earliest offset, as ListOffsets asks for them."""


@dataclass(slots=True)
class Progress:
    """What a client has asked for. Times in milliseconds."""

    fetched_at: dict[TopicPartition, int] = field(default_factory=dict)
    """When a partition was in a Fetch last."""
    stable_since: int | None = None
    """When the last assignment came, None while the client joins."""
    written_at: int = 0
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    """The committed offsets that OffsetFetch told since the last assignment of an eager member, -1 for none."""
    before: dict[TopicPartition, int] = field(default_factory=dict)
    """The same before that assignment: a ListOffsets may still be on its way that goes by it."""
    generation: int = NO_GENERATION
    """That of the last assignment."""
    out_of_range: set[TopicPartition] = field(default_factory=set)
    """Partitions at whose position there is nothing to fetch."""


def follow_request(state: ClientState, progress: Progress, operation: Operation, event: Event) -> None:
    """A request arrives; the state is that before it."""
    if operation.api == "Fetch":
        progress.fetched_at |= dict.fromkeys(fetched_partitions(operation.body), event.time)
    elif operation.api == "JoinGroup":
        progress.stable_since = None
    elif operation.api == "ListOffsets":
        judge_reset(state, progress, operation, event.time)
    elif operation.api == "OffsetCommit":
        judge_positions_of_commit(state, progress, operation)


def follow_response(state: ClientState, progress: Progress, operation: Operation, event: Event) -> None:
    """A response leaves the cluster; the state is that after it."""
    error = event.body.get("error_code", 0)
    if operation.api == "SyncGroup" and not error:
        progress.stable_since = event.time
        # What OffsetFetch told in a generation is good for it, though the client was reset and has joined it again:
        # Apache Kafka's client keeps that (ConsumerCoordinator.PendingCommittedOffsetRequest).
        if not state.is_cooperative and progress.generation != state.installed_generation:
            progress.before, progress.committed = progress.committed, {}
        progress.generation = state.installed_generation
    elif operation.api == "OffsetFetch":
        for group in event.body.get("groups") or (event.body,):
            for topic in group.get("topics") or ():
                for row in topic["partitions"]:
                    if not row["error_code"] and not group.get("error_code"):
                        partition = topic_of(topic, state.topic_names), int(row["partition_index"])
                        progress.committed[partition] = row["committed_offset"]
    elif operation.api == "Fetch":
        for topic in event.body.get("responses") or ():
            for row in topic["partitions"]:
                if row["error_code"] == Error.OFFSET_OUT_OF_RANGE:
                    partition = str(topic.get("topic", "")), int(row["partition_index"])
                    progress.out_of_range.add(partition)
                    if state.application is not None:  # it begins where the reset policy says
                        state.application.positions.pop(partition, None)
                        state.application.out_of_range.add(partition)
                        state.application.sought.discard(partition)


def judge_reset(state: ClientState, progress: Progress, operation: Operation, time: int) -> None:
    """ListOffsets asks where a partition begins or ends: there is no committed offset to begin at (MCOMMIT-19)."""
    if state.join is None:
        return
    is_fresh = progress.stable_since is None or time - progress.stable_since <= state.knowledge.grace
    known = (progress.before if is_fresh else {}) | progress.committed
    title = "The reset policy decides where there may be a committed offset"
    for topic in operation.body.get("topics") or ():
        for row in topic["partitions"]:
            partition = str(topic.get("name", "")), int(row["partition_index"])
            if row["timestamp"] not in RESET_TIMESTAMPS or partition in progress.out_of_range:
                continue
            told = known.get(partition)
            where = f"{partition[0]}/{partition[1]}"
            observed = f"ListOffsets of {where}, of which OffsetFetch has told {'nothing' if told is None else told}"
            state.check(told == -1, "MCOMMIT-19", operation, title, f"OffsetFetch of {where} first, and -1", observed)


def judge_positions_of_commit(state: ClientState, progress: Progress, operation: Operation) -> None:
    """A commit of an eager member covers no partition whose position is not known yet: since the assignment it was told
    no offset of it, and has neither fetched nor sought it (MCOMMIT-18)."""
    application, since = state.application, progress.stable_since
    is_eager = bool(state.subscriptions) and state.subscriptions.keys() <= EAGER_ASSIGNORS
    if application is None or since is None or not is_eager or state.is_installed_doubtful:
        return
    if application.manual_since is not None:
        return  # they are those that it has assigned, whose commits have no generation (MCOMMIT-12)
    if generation_in(operation) != state.installed_generation or not state.installed:
        return
    known = progress.committed.keys() | application.sought | application.kept
    known |= application.owned - state.installed
    known |= {partition for partition, time in progress.fetched_at.items() if time > since}
    covered = {partition for partition, _ in read_offsets(operation.body, state.topic_names)} & state.installed
    title, expected = "The commit covers partitions without a position", "no partition before its offset is known"
    state.check(covered <= known, "MCOMMIT-18", operation, title, expected, describe_partitions(covered - known))


def judge_progress(state: ClientState, progress: Progress, time: int) -> None:
    """The trace ends, or the client is asked to: it has been at work until then."""
    end = time if state.asked_to_end is None else state.asked_to_end
    judge_manual_progress(state, progress, end)
    since, installed = progress.stable_since, state.installed
    if since is None or not installed or end - since <= PROGRESS_MS + state.knowledge.grace or is_held_up(state, end):
        return
    paused = state.application.paused if state.application is not None else frozenset[TopicPartition]()
    wanted = installed - paused - progress.out_of_range - fetches_outstanding(state)
    wanted -= led_by_silent_nodes(state, installed, end)
    idle = sorted(
        each for each in wanted - held_partitions(state) if progress.fetched_at.get(each, since) < end - PROGRESS_MS
    )
    sequence = state.join.handle - 1 if state.join is not None else 0
    told = describe_partitions(idle)
    title, expected = "A partition is not fetched", f"a Fetch of each partition within {PROGRESS_MS} ms"
    violation = build_violation("PREFETCH-03", sequence, title, expected, f"none of {told}")
    state.evidence.judge(not idle, violation)
    judge_returned(state, progress, wanted, end, sequence)


def judge_manual_progress(state: ClientState, progress: Progress, end: int) -> None:
    """A client whose application has assigned its partitions fetches each of them, unless something holds it up."""
    application = state.application
    if application is None or application.manual_since is None or not application.owned:
        return
    since, idle_since = application.manual_since, application.idle_since
    is_idle = application.has_failed_poll or (idle_since is not None and end - idle_since > WAITING_MS)
    is_waiting = any(end - each.sent_at > WAITING_MS for each in state.outstanding.values() if each.api != "Fetch")
    if end - since <= PROGRESS_MS or is_idle or is_waiting or is_cut_off(state, end):
        return
    wanted = application.owned - application.paused - progress.out_of_range - fetches_outstanding(state)
    idle = sorted(each for each in wanted if progress.fetched_at.get(each, since) < end - PROGRESS_MS)
    title, expected = "A partition is not fetched", f"a Fetch of each partition within {PROGRESS_MS} ms"
    sequence, observed = application.command_sequence, f"none of {describe_partitions(idle)}"
    state.evidence.judge(not idle, build_violation("PREFETCH-03", sequence, title, expected, observed))


def held_partitions(state: ClientState) -> frozenset[TopicPartition]:
    """The partitions of which a driven client has records buffered: they are fetched once these are returned."""
    application = state.application
    known = state.buffers.ends if application is not None else ()
    return frozenset(each for each in known if application is not None and state.buffers.held(application, each))


def led_by_silent_nodes(
    state: ClientState, installed: frozenset[TopicPartition], end: int
) -> frozenset[TopicPartition]:
    """The partitions whose leader, as Metadata told it, owes the response to a Fetch for long; a Fetch to one leader
    holds no other up."""
    late = (each for each in state.outstanding.values() if each.api == "Fetch" and end - each.sent_at > WAITING_MS)
    silent = {state.leaders.get(partition) for fetch in late for partition in fetched_partitions(fetch.body)}
    is_known = None not in silent and installed <= state.leaders.keys()
    return frozenset(each for each in installed if silent and (not is_known or state.leaders[each] in silent))


def is_cut_off(state: ClientState, end: int) -> bool:
    """Whether the client cannot find its coordinator, or has not had the time to go on since, or OffsetFetch has
    failed."""
    rhythm = state.rhythm
    is_found_late = rhythm.found_at is not None and end - rhythm.found_at <= PROGRESS_MS
    return rhythm.lost_since is not None or is_found_late or state.is_backing_off(end)


def is_held_up(state: ClientState, end: int) -> bool:
    """Whether something keeps the client from its work: it joins, it waits for a response, it has just found its
    coordinator, it is not polled, polls fail, or its subscription is over."""
    if any(each.phase is not Phase.STABLE for each in state.knowledge.standings) or state.rebalance_told is not None:
        return True
    if is_cut_off(state, end):
        return True
    if any(end - each.sent_at > WAITING_MS for each in state.outstanding.values() if each.api != "Fetch"):
        return True
    application = state.application
    if application is not None and (application.has_failed_poll or application.has_ended):
        return True
    idle_since = application.idle_since if application is not None else None
    return idle_since is not None and end - idle_since > WAITING_MS


def judge_returned(
    state: ClientState, progress: Progress, wanted: frozenset[TopicPartition], end: int, sequence: int
) -> None:
    """The application has got what was there for long enough."""
    application = state.application
    if application is None or application.wanted is not None or end - progress.written_at <= PROGRESS_MS:
        return
    known = {each for each in wanted & application.owned if each in application.positions}
    left = sorted(each for each in known if application.positions[each] < state.ends.get(each, 0))
    title, expected = "Records are not returned", f"what is there for {PROGRESS_MS} ms"
    violation = build_violation(
        "POLL-05", sequence, title, expected, f"records are left of {describe_partitions(left)}"
    )
    state.evidence.judge(not left, violation)
