"""Polls and fetches of a client, held against what it was sent of each partition and has not returned (KIP-41): a
monitor.

A record is buffered from the Fetch response that brings it to the poll that returns it. What disturbs a buffer, such
as a seek or a rebalance, makes it unknown: nothing is said of it until the next response.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from fencepost.model.assignors.group import TopicPartition
from fencepost.traces.classic.client.messages import (
    UNSUPPORTED,
    describe_partitions,
    fetch_offsets,
    fetched_partitions,
    read_partition,
)
from fencepost.traces.classic.client.view import POSITION_APIS, ClientView
from fencepost.traces.client_judge.judge import build_violation
from fencepost.traces.client_judge.monitors import (
    Finding,
    Findings,
    Seen,
    after,
    at_end,
    before,
    build_pass,
    check,
)
from fencepost.traces.events import Event

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


PROGRESS_MS = 6_000
"""How long a client may take to ask for the records of a partition, or to return what is there."""
WAITING_MS = 2_000
"""A request that waits longer for its response may hold up everything else."""
MANY_POLLS = 20
"""So many polls that return nothing are more than a client takes to read what has come."""


@dataclass(slots=True)
class Wait:
    """A partition with buffered records that no poll has returned yet, for so many polls that returned others.

    `ahead` is what was buffered of other partitions at first.
    """

    ahead: int
    polls: int = 0
    empty_polls: int = 0
    """The polls that returned nothing."""
    passed: int = 0
    """The records of others that were returned meanwhile."""
    is_refilled: bool = False
    """Whether records of others came meanwhile."""


@dataclass(slots=True)
class Draining:
    """The buffers of all partitions, and what was fetched of them. Times in milliseconds."""

    ends: dict[TopicPartition, int] = field(default_factory=dict)
    """The offset behind the last record that came, of partitions whose buffer is known."""
    doubtful: dict[TopicPartition, int] = field(default_factory=dict)
    """The same of partitions whose buffer has become unknown: the client may have these records or not."""
    came: dict[TopicPartition, int] = field(default_factory=dict)
    """When the last record came."""
    most: dict[TopicPartition, int] = field(default_factory=dict)
    """The most records of a partition that were buffered at once."""
    waits: dict[TopicPartition, Wait] = field(default_factory=dict)
    partly: set[TopicPartition] = field(default_factory=set)
    """Partitions of which a poll has returned some records of a response, and left others."""
    beside_error: set[TopicPartition] = field(default_factory=set)
    """Partitions whose last records came in a response with an error of another one."""
    begun: dict[TopicPartition, int] = field(default_factory=dict)
    """What the client had certainly read when the poll under way began."""
    returned: set[TopicPartition] = field(default_factory=set)
    """The partitions of the records of the poll under way; some clients tell of these in another order."""
    stopped_at: frozenset[TopicPartition] = frozenset()
    """The partitions of which the last poll returned some records, and not all."""
    left: frozenset[TopicPartition] = frozenset()
    """Those with buffered records that it returned nothing of, if it returned as much as it may."""
    empty_since: dict[TopicPartition, tuple[int, int, int]] = field(default_factory=dict)
    """When a partition became empty that is not fetched, how many polls there were since, and in how many of them the
    client may drain what it had of others."""
    asked: dict[TopicPartition, int] = field(default_factory=dict)
    """The offsets of the last fetches."""
    emptied: frozenset[TopicPartition] = frozenset()
    """The partitions whose last record the last poll returned."""
    resumes: bool = False
    """Whether a poll began where the one before it had stopped."""
    fetches_retained: bool = False
    """Whether a partition was fetched of which more was buffered than a poll may return."""
    starved: bool = False
    busy_at: dict[TopicPartition, int] = field(default_factory=dict)
    """When a partition was in a Fetch last, or a record of it was returned: until then it was not empty."""
    returned_at: int = 0
    """When a poll returned records last."""

    def count(self, view: ClientView, partition: TopicPartition) -> int:
        """The number of records of a partition that are buffered, 0 if that is unknown."""
        end, position = self.ends.get(partition, 0), view.application.next_of(partition)
        gaps = sum(each == partition and position <= offset < end for each, offset in view.markers)
        return max(0, end - position - gaps)

    def buffered_partitions(self, view: ClientView) -> frozenset[TopicPartition]:
        """The partitions with buffered records."""
        return frozenset(each for each in self.ends if self.count(view, each))

    def total(self, view: ClientView, but: TopicPartition | None = None) -> int:
        """The number of buffered records, of all partitions or all but one."""
        return sum(self.count(view, each) for each in self.ends if each != but)

    def doubtful_counts(self, view: ClientView) -> dict[TopicPartition, int]:
        """The numbers of records that may be buffered of partitions whose buffer is unknown."""
        lost, next_of = view.application.owned - self.ends.keys(), view.application.next_of
        return {
            each: end - next_of(each) for each, end in self.doubtful.items() if each in lost and end > next_of(each)
        }

    def bound(self, view: ClientView, partition: TopicPartition) -> int:
        """In how many polls a partition that waits is served, whether polls go on behind the place where the last one
        stopped, at it, or by the age of the responses."""
        others = sum(most for each, most in self.most.items() if each != partition and each in view.application.owned)
        limit = max(view.application.limit, 1)
        return max(len(view.application.owned), others // limit + 1, self.waits[partition].ahead // limit + 1)

    def is_starving(self, view: ClientView, partition: TopicPartition) -> bool:
        """Whether a partition waits for longer than any rule allows: for more polls, and behind more records."""
        wait, bound = self.waits[partition], self.bound(view, partition)
        others = sum(most for each, most in self.most.items() if each != partition and each in view.application.owned)
        allowed = max(len(view.application.owned) * view.application.limit, others, wait.ahead)
        return (wait.polls > bound and wait.passed > allowed) or wait.empty_polls > MANY_POLLS

    def forget(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """The buffers of some partitions are unknown, or of all."""
        self.doubtful |= {each: end for each, end in self.ends.items() if partitions is None or each in partitions}
        by_partition = (self.ends, self.came, self.waits, self.empty_since, self.asked)
        everything = frozenset(self.partly | self.beside_error).union(*by_partition)
        for partition in everything if partitions is None else partitions:
            for known in by_partition:
                known.pop(partition, None)
            self.partly.discard(partition)
            self.beside_error.discard(partition)
        self.stopped_at, self.left, self.begun = frozenset(), frozenset(), {}
        self.emptied = frozenset()

    # --- What disturbs the buffers, and what fills them.

    @after("loss", "hangup fault", "callback")
    def take_loss(self, view: ClientView, seen: Seen) -> None:
        """A response is lost, or the listener is called: what is buffered may change."""
        self.forget()

    @after("delivered internal")
    def take_delivery(self, view: ClientView, seen: Seen) -> None:
        """A Fetch response with records leaves."""
        application, event = view.application, seen.event
        ends = {read_partition(name): end for name, end in event.body["ends"].items()}
        if application.command is not None and application.command["do"] in CHANGES:
            self.forget(ends)  # a client may give up its fetches then
            self.doubtful |= ends
            for partition, end in ends.items():
                self.most[partition] = max(self.most.get(partition, 0), end - application.next_of(partition))
            return
        failed = frozenset(map(read_partition, event.body["errors"]))
        for partition, end in ends.items():
            is_wanted = partition in self.asked  # else it was sought or lost since the fetch (POLL-11)
            if partition in application.owned and is_wanted:
                if not self.count(view, partition):
                    self.waits[partition] = Wait(self.total(view, partition))
                for other, wait in self.waits.items():
                    wait.is_refilled |= other != partition and wait.polls > 0
                self.ends[partition], self.came[partition] = end, event.time
                self.most[partition] = max(self.most.get(partition, 0), self.count(view, partition))
                if failed:
                    self.beside_error.add(partition)
                else:
                    self.beside_error.discard(partition)

    @after("poll")
    def take_records(self, view: ClientView, seen: Seen) -> None:
        """A poll returns records."""
        self.returned_at = seen.event.time
        self.returned.update((str(topic), int(number)) for topic, number, _ in seen.event.body["records"])
        self.busy_at |= dict.fromkeys(self.returned, seen.event.time)

    # --- Polls.

    @after("command internal")
    def begin_poll(self, view: ClientView, seen: Seen) -> Findings:
        """The application polls: the client has read what came until a moment ago."""
        if seen.event.body["do"] != "poll":
            return
        application = view.application
        if self.emptied and application.last_idle >= IDLE_MS and is_quiet(view):
            fetched = {each for each in self.emptied if self.asked.get(each, -1) >= self.ends.get(each, 0)}
            title, expected = "No fetch is sent before the next poll", "a fetch of a partition that is empty"
            observed = f"none of {describe_partitions(self.emptied)}"
            yield check(bool(fetched), "PREFETCH-07", seen.event.sequence, title, expected, observed)
        self.emptied = frozenset()
        if not is_quiet(view):
            self.forget()
        read_until, returnable = seen.event.time - view.knowledge.grace, application.owned - application.paused
        self.begun = {
            each: held
            for each in returnable & self.ends.keys()
            if self.came[each] <= read_until and (held := self.count(view, each))
        }
        self.returned.clear()

    @before("result internal")
    def end_command(self, view: ClientView, seen: Seen) -> Findings:
        """A command is over."""
        application, event = view.application, seen.event
        command, has_failed = application.command or {}, "error" in event.body
        match command.get("do"):
            case "poll":
                yield from self.end_poll(view, event)
            case "subscribe" | "assign" | "close" | "unsubscribe" if event.body.get("error") != UNSUPPORTED:
                self.forget()
            case "pause" if not has_failed:
                self.forget(application.paused | {(topic, number) for topic, number in command["partitions"]})
            case "seek" if not has_failed:
                self.forget([(str(command["topic"]), int(command["partition"]))])

    def end_poll(self, view: ClientView, event: Event) -> Findings:
        """A poll is over."""
        application = view.application
        if not is_quiet(view):
            self.forget()
            return
        if "error" in event.body:
            self.waits.clear()
            self.stopped_at = self.left = self.emptied = frozenset()
            return
        if application.limit and self.begun:
            wanted = min(application.limit, sum(self.begun.values()))
            title, expected = "A poll returns less than is buffered", f"{wanted} records"
            is_full = application.returned >= wanted
            yield check(is_full, "POLL-04", event.sequence, title, expected, f"{application.returned} records")
        if application.command and application.command.get("ms", 0) >= LONG_POLL_MS and self.begun:
            took = event.time - application.began
            title, expected = "A poll waits though records are buffered", f"less than {PROMPT_MS} ms"
            yield check(took < PROMPT_MS, "POLL-15", event.sequence, title, expected, f"{took} ms")
        if application.returned and self.left:  # something of that is returned, or of where the last poll has stopped
            returned, rest = frozenset(self.returned), self.left | self.stopped_at
            title, expected = "A poll begins anew", f"some of {describe_partitions(rest)}"
            if returned & rest or returned <= self.ends.keys():  # else it may have stopped at what is not known
                is_on, observed = bool(returned & rest), describe_partitions(returned)
                yield check(is_on, "POLL-08", event.sequence, title, expected, observed)
            self.resumes |= bool(returned & self.stopped_at)
        yield from self.judge_waits(view, event)
        self.note_rest(view)
        yield from self.judge_empty(view, event)

    def judge_waits(self, view: ClientView, event: Event) -> Findings:
        """The partitions with buffered records are served in time."""
        application = view.application
        for partition in sorted(self.returned & self.waits.keys()):
            wait = self.waits.pop(partition)
            if wait.polls or wait.ahead:
                yield build_pass("POLL-05", event.sequence)
                yield build_pass("POLL-07" if wait.is_refilled else "POLL-06", event.sequence)
        for partition, wait in self.waits.items():
            if not application.limit or partition not in self.begun:
                continue
            wait.empty_polls += not application.returned
            if self.returned <= self.ends.keys():  # else nobody knows how much was ahead of it
                wait.polls += bool(application.returned)
                wait.passed += application.returned
            if self.is_starving(view, partition):
                self.starved = True
                requirement = "POLL-07" if wait.is_refilled else "POLL-06"
                title, name = "A partition with buffered records is not served", describe_partitions({partition})
                expected = f"{name} within {self.bound(view, partition)} polls"
                observed = f"{name} waits for {wait.polls} polls and more"
                yield build_violation(requirement, event.sequence, title, expected, observed)

    def note_rest(self, view: ClientView) -> None:
        """Note what the poll has left, for the next one."""
        application = view.application
        held, visited = self.buffered_partitions(view), frozenset(self.returned)
        is_full = bool(application.limit) and application.returned == application.limit
        self.stopped_at = visited & held
        self.left = held - visited if is_full else frozenset()
        self.partly |= visited & held
        self.emptied = (visited & self.ends.keys()) - held

    def judge_empty(self, view: ClientView, event: Event) -> Findings:
        """A partition of which nothing is buffered is fetched after some polls."""
        application = view.application
        if any(event.time - each.sent_at > MAX_WAIT_MS for each in view.outstanding.values() if each.api == "Fetch"):
            self.empty_since.clear()  # a client may send no other fetch before the response to that
            return
        open_ones = view.fetches_outstanding()
        is_cut_off = view.has_no_coordinator(event.time) or view.is_backing_off(event.time)
        is_cut_off |= any(each.api in POSITION_APIS for each in view.outstanding.values())
        metadata = (each for each in view.outstanding.values() if each.api == "Metadata")
        is_cut_off |= any(event.time - each.sent_at > MAX_WAIT_MS for each in metadata)
        most_to_drain = self.total(view) + sum(self.doubtful_counts(view).values())
        for partition in sorted(application.owned):
            is_unknown = is_cut_off and partition not in self.asked  # its position is, or its leader
            is_fetched = partition in open_ones or partition in application.paused
            if is_fetched or is_unknown or self.count(view, partition):
                self.empty_since.pop(partition, None)
                continue
            since, polls, most = self.empty_since.get(partition, (event.time, 0, 0))
            # A client may drain first what it has from the same broker: Apache Kafka's does (KAFKA-17182).
            bound = max(most, most_to_drain // max(application.limit, 1) + MANY_POLLS)
            self.empty_since[partition] = since, polls + 1, bound
            if polls > bound and event.time - since > EMPTY_MS:
                title, name = "An empty partition is not fetched", describe_partitions({partition})
                observed = f"none of {name} in {polls} polls and {event.time - since} ms"
                yield build_violation("PREFETCH-03", event.sequence, title, f"Fetch of {name}", observed)

    # --- Fetches.

    @before("Fetch request")
    def judge_fetch(self, view: ClientView, seen: Seen) -> Findings:
        """A Fetch arrives: it asks for what was not sent yet."""
        application, sequence = view.application, seen.request.handle - 1
        offsets = list(fetch_offsets(seen.request.body, view.topic_names))
        self.busy_at |= dict.fromkeys((partition for partition, _ in offsets), seen.event.time)
        for partition, offset in offsets if application.is_driven else ():
            if self.empty_since.pop(partition, None) is not None or partition in application.owned:
                yield build_pass("PREFETCH-03", sequence)
            end = self.ends.get(partition)
            if end is None and partition in application.sought and offset != application.next_of(partition):
                continue  # it waited for its connection while the partition was sought: nobody waits for its response
            self.asked[partition] = offset
            if end is None or not is_quiet(view) or partition in application.paused:
                continue
            held = self.count(view, partition)
            self.fetches_retained |= held > max(application.limit, 1)
            if held and offset < end:
                yield self.refetch(view, sequence, partition, offset)
            elif partition in self.partly:
                self.partly.discard(partition)
                yield build_pass("PREFETCH-04", sequence)
                yield build_pass("POLL-02", sequence)
            if partition in self.beside_error and offset >= end:
                yield build_pass("POLL-14", sequence)

    def refetch(self, view: ClientView, sequence: int, partition: TopicPartition, offset: int) -> Finding:
        """Records are fetched that have come already: they were thrown away, or will come twice."""
        is_thrown = offset <= view.application.next_of(partition)
        requirement = "POLL-02" if is_thrown else "PREFETCH-04"
        if is_thrown and partition in self.beside_error:
            requirement = "POLL-14"
        title, name = "Records are fetched a second time", describe_partitions({partition})
        expected, observed = f"{name} from {self.ends[partition]} on, or no fetch", f"{name} from {offset} on"
        self.forget([partition])
        self.asked[partition] = offset
        return build_violation(requirement, sequence, title, expected, observed)

    # --- The end: a client asks for the records of every partition that it has, and returns them.

    @at_end
    def judge_end(self, view: ClientView, time: int) -> Findings:
        """The trace ends, or the client is asked to end before that: it has been at work until then."""
        end = time if view.asked_to_end is None else view.asked_to_end
        yield from self.judge_manual_progress(view, end)
        yield from self.judge_progress(view, end)
        application = view.application
        owned = application.owned if application.manual_since is None else frozenset[TopicPartition]()
        for partition, wait in self.waits.items():
            if application.limit and self.is_starving(view, partition) and partition in owned:
                title = "A partition with buffered records is never served"
                expected = f"{describe_partitions({partition})} within {self.bound(view, partition)} polls"
                yield build_violation("POLL-05", 0, title, expected, f"it has waited for {wait.polls} polls")
        if self.resumes:
            title, expected = "Fetches of retained partitions starve others", "no fetch of what is retained"
            observed = "a partition was not served, and retained ones were fetched"
            yield check(not (self.fetches_retained and self.starved), "PREFETCH-09", 0, title, expected, observed)

    def judge_progress(self, view: ClientView, end: int) -> Findings:
        """A member has fetched each partition of its assignment."""
        since, installed = view.assigned_at, view.installed
        if since is None or not installed or end - since <= PROGRESS_MS + view.knowledge.grace:
            return
        if is_held_up(view, end):
            return
        wanted = installed - view.application.paused - view.application.out_of_range - view.fetches_outstanding()
        wanted -= led_by_silent_nodes(view, installed, end)
        sequence, held = view.join_sequence, self.buffered_partitions(view)
        if end - self.returned_at <= PROGRESS_MS:  # it may drain first what it has of others
            held |= self.doubtful_counts(view).keys()
        yield self.judge_idle(wanted - held, since, end, sequence)
        yield from self.judge_returned(view, wanted, end, sequence)

    def judge_manual_progress(self, view: ClientView, end: int) -> Findings:
        """A client whose application has assigned its partitions fetches each of them, unless something holds it up."""
        application = view.application
        if application.manual_since is None or not application.owned:
            return
        since, idle_since = application.manual_since, application.idle_since
        is_idle = application.has_failed_poll or (idle_since is not None and end - idle_since > WAITING_MS)
        is_waiting = any(end - each.sent_at > WAITING_MS for each in view.outstanding.values() if each.api != "Fetch")
        if end - since > PROGRESS_MS and not is_idle and not is_waiting and not is_cut_off(view, end):
            wanted = application.owned - application.paused - view.application.out_of_range - view.fetches_outstanding()
            yield self.judge_idle(wanted, since, end, application.command_sequence)

    def judge_idle(self, wanted: frozenset[TopicPartition], since: int, end: int, sequence: int) -> Finding:
        """These partitions were fetched not long ago."""
        idle = [each for each in wanted if self.busy_at.get(each, since) < end - PROGRESS_MS]
        title, expected = "A partition is not fetched", f"a Fetch of each partition within {PROGRESS_MS} ms"
        return check(not idle, "PREFETCH-03", sequence, title, expected, f"none of {describe_partitions(idle)}")

    def judge_returned(self, view: ClientView, wanted: frozenset[TopicPartition], end: int, sequence: int) -> Findings:
        """The application has got what was there for long enough. As long as polls return records, their number says
        whether a partition waits for too long."""
        application = view.application
        if not application.is_driven or application.wanted is not None or end - view.written_at <= PROGRESS_MS:
            return
        if end - self.returned_at <= PROGRESS_MS:
            return
        known = {each for each in wanted & application.owned if each in application.positions}
        left = [each for each in known if application.positions[each] < view.ends.get(each, 0)]
        title, expected = "Records are not returned", f"what is there for {PROGRESS_MS} ms"
        yield check(not left, "POLL-05", sequence, title, expected, f"records are left of {describe_partitions(left)}")


def is_quiet(view: ClientView) -> bool:
    """Whether the client is stable, has called back, and was told of nothing that disturbs its buffers."""
    is_told = view.rebalance_told is not None or view.growth is not None or bool(view.debts)
    is_stable = view.knowledge.latest.is_stable and view.exchange_outstanding() is None
    if not is_stable or is_told:
        return False
    return view.application.is_driven and not view.application.assignments


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
    is_found_late = view.found_at is not None and end - view.found_at <= PROGRESS_MS
    return view.lost_since is not None or is_found_late or view.is_backing_off(end)


def is_held_up(view: ClientView, end: int) -> bool:
    """Whether something keeps the client from its work: it joins, it waits for a response, it has just found its
    coordinator, it is not polled, polls fail, or its subscription is over."""
    if any(not each.is_stable for each in view.knowledge.standings) or view.rebalance_told is not None:
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
