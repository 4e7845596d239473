"""One group of a trace of push: what its channels show of consumers and offsets, and what explains it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fencepost.model.frozen import evolve
from fencepost.model.push.consumer import OffsetTable, accept_offset, ping_period, removal_time
from fencepost.model.push.dialect import REPAIRED
from fencepost.model.push.group import Interest, Registration
from fencepost.traces.events import Body, Event, Operation, Order
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation
from fencepost.traces.judge.search.search import Search
from fencepost.traces.push.stepper import (
    WAITING,
    Partition,
    PendingRegistration,
    PushStepper,
    PushWorld,
    Surroundings,
    advance,
    explain_request,
    must_wait,
    take_response,
)


def attempt_in(event: Event) -> int:
    """The number of the attempt that a message is about, 0 without one."""
    return int(event.body.get("attempt", 0))


def partitions_in(event: Event) -> tuple[Partition, ...]:
    """The partitions in a message."""
    return tuple((entry["topic"], entry["partition"]) for entry in event.body.get("partitions", ()))


# What is known of one registration from its channel alone.


@dataclass(slots=True)
class MemberFacts:
    """A registration as its channel shows it. Attempts go by their numbers on the wire, times are milliseconds of the
    trace. A message is seen up to `slack` after it was sent, and a timer fires up to `slack` late."""

    consumer: str
    connection: int
    interest: Interest
    session_timeout: int
    slack: int
    registered_at: int
    heard_at: int
    """When the consumer sent its last response."""
    is_registered: bool = False
    is_closed: bool = False
    is_past: bool = False
    """Its coordinator has lost its place since."""
    may_close: bool = False
    """Its registration was refused, or it broke the rules."""
    stop: int | None = None
    """The attempt of the last Stop."""
    has_stopped: bool = False
    """That Stop is answered."""
    start: int | None = None
    """The attempt of the last Start."""
    held: bool = False
    """A Stop was seen, and the Start after it is not answered."""
    late_answers: set[int] = field(default_factory=set)
    """The attempts whose Stop it answered after a newer one had begun for others."""
    share: tuple[Partition, ...] = ()
    """Of the last Start."""
    fetching: tuple[Partition, ...] = ()
    """What it has said that it fetches."""
    pinged_at: int | None = None
    freed_at: int = 0
    unanswered: int = 0
    """How many pings were seen since the last one that was answered."""
    pings: int = 0
    answered: int = 0
    """The number of the last ping that was answered."""
    answered_at: int = 0
    before_answer: tuple[int, int] = (0, 0)
    """`unanswered` and `answered` before the last answer, which the coordinator may not have had."""
    awaited: list[int] = field(default_factory=list)
    """The numbers of the pings that are not answered, in order."""

    @property
    def registration(self) -> Registration:
        """Its id and the number of its channel."""
        return self.consumer, self.connection

    @property
    def is_open(self) -> bool:
        """Whether it is registered on a channel that is not closed."""
        return self.is_registered and not self.is_closed

    def on_command(self, event: Event) -> None:
        """A Stop or Start was seen."""
        if event.api == "Stop":
            self.stop, self.has_stopped, self.held = attempt_in(event), False, True
        else:
            self.start, self.share = attempt_in(event), partitions_in(event)

    def on_response(self, event: Event) -> None:
        """The consumer responds to a Stop or Start."""
        number = attempt_in(event)
        if event.api == "Stop":
            self.fetching = ()
            self.has_stopped = self.has_stopped or number == self.stop
            if number != self.stop:
                self.late_answers.add(number)
        elif number == self.start:
            self.held = False
            self.freed_at = event.time
            if not event.body.get("error_code", 0):
                self.fetching = self.share

    @property
    def lease_end(self) -> int:
        """Before this moment the coordinator cannot take the consumer for dead."""
        return removal_time(self.heard_at, self.session_timeout, 0)

    def on_ping(self, body: Body, now: int) -> Iterator[tuple[str, str, str, str]]:
        """The requirements that a ping breaks, each with the field, what was expected and what was seen."""
        period = ping_period(self.session_timeout)
        if self.pinged_at is not None and now < self.pinged_at + period - self.slack:
            told = f"not before {self.pinged_at + period} ms"
            yield "PUSH-08", "early", told, f"{now} ms"
        in_flight = bool(self.answered) and now <= self.answered_at + self.slack
        counts = {self.unanswered, *([self.before_answer[0]] if in_flight else [])}
        if body["num_retries"] not in counts:
            yield "PUSH-12", "num_retries", str(self.unanswered), str(body["num_retries"])
        known = {self.answered, *([self.before_answer[1]] if in_flight else [])}
        if body.get("confirmed", self.answered) not in known:
            yield "PUSH-42", "confirmed", str(self.answered), str(body["confirmed"])
        self.pings += 1
        self.unanswered += 1
        self.pinged_at = now
        self.awaited.append(self.pings)

    def on_ping_response(self, now: int) -> None:
        """The consumer has answered the oldest ping."""
        if self.awaited:
            self.before_answer = self.unanswered, self.answered
            self.answered, self.answered_at = self.awaited.pop(0), now
            self.unanswered = len(self.awaited)
        self.heard_at = now

    def overdue_ping(self, now: int) -> int | None:
        """When the ping was due that is missing by `now`; None if none is."""
        due = max((self.pinged_at or self.registered_at) + ping_period(self.session_timeout), self.freed_at)
        return due if now > due + 2 * self.slack and now <= self.lease_end else None


# The offsets that the coordinator knows, as its consumers have reported them.


@dataclass(slots=True)
class GroupOffsets:
    """The offsets of one group. Before anything is reported, whatever a Start has is taken for what is recorded."""

    table: OffsetTable = field(default_factory=OffsetTable)
    owners: dict[Partition, int] = field(default_factory=dict)
    """The connection of the consumer that was told last to fetch a partition."""
    earlier: dict[Partition, list[tuple[int, int]]] = field(default_factory=dict)
    """Offsets before the newest, each with the moment when it was replaced."""
    has_failed_over: bool = False
    """A coordinator that kept offsets in memory may have lost the newest."""

    def on_start(self, connection: int, entries: Iterable[Body]) -> None:
        """A consumer is told where to begin."""
        for entry in entries:
            partition = (entry["topic"], entry["partition"])
            self.owners[partition] = connection
            if partition not in self.earlier:
                self.table, _ = accept_offset(self.table, partition, entry["offset"], True, REPAIRED)
                self.earlier[partition] = []

    def on_report(self, connection: int, entries: Iterable[Body], now: int) -> None:
        """A consumer says how far it is."""
        for entry in entries:
            partition = (entry["topic"], entry["partition"])
            before, is_owner = self.table.offset(partition), self.owners.get(partition) == connection
            if entry["offset"] != before and is_owner:
                self.table, _ = accept_offset(self.table, partition, entry["offset"], is_owner, REPAIRED)
                self.earlier.setdefault(partition, []).append((before, now))

    def wrong_offsets(self, entries: Iterable[Body], now: int, slack: int) -> Iterator[tuple[Partition, int, int]]:
        """The partitions of a Start whose offset is not the last one reported, with both."""
        for entry in entries:
            partition = (entry["topic"], entry["partition"])
            if partition not in self.earlier:
                continue
            newest = self.table.offset(partition)
            allowed = {old for old, until in self.earlier[partition] if self.has_failed_over or now <= until + slack}
            if entry["offset"] not in allowed | {newest}:
                yield partition, newest, entry["offset"]


# One group of a trace, with everything that is known of it.


MAX_EXPLANATIONS = 4_000
"""How many configurations may explain what was seen of a group."""
RULE_EVIDENCE: Mapping[str, tuple[str, ...]] = {
    "rebalance.again": ("PUSH-15", "PUSH-19"),
    "rebalance.finished": ("PUSH-19",),
    "rebalance.released": ("PUSH-20",),
    "rebalance.retried": ("PUSH-21", "PUSH-41"),
}
"""The requirements that a rule on the way to a Stop shows to hold."""
FAILURES = frozenset({"rebalance.released", "rebalance.retried"})
"""The rules that say nothing where the limit of retries is not known."""


class FollowedGroup:
    """One group of a trace. What explains it so far are the configurations of its search."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stepper = PushStepper(name, Order.INTERVALS, 0)
        self.search = Search(self.stepper, [], max_configurations=MAX_EXPLANATIONS)
        self.members: dict[int, MemberFacts] = {}
        """Those that registered, by the number of their connection."""
        self.offsets = GroupOffsets()
        self.rules = Counter[str]()
        """How often each rule is on the way to what was seen."""
        self.triggers: dict[str, None] = {}
        """The requirements that the next rebalance shows to hold, the most telling first."""
        self.attempt: int | None = None
        """The number of the newest attempt that was seen."""
        self.begun_at = 0
        """When its first Stop was seen."""
        self.changed_at = 0
        """When something last happened to the group that the coordinator may have to act on."""
        self.looked_at = -1
        """When it was last looked at for what is overdue."""
        self.held_up_since: int | None = None
        """Since when a rebalance of another group may hold it up."""
        self.is_lost = False
        """After a violation nothing more is said of it."""
        self.begin(PushWorld())

    def begin(self, world: PushWorld) -> None:
        """Forget the past: the group is in this state."""
        self.search.open_operations.clear()
        self.search.configurations = [Configuration(world)]

    # --- what explains it ---------------------------------------------------------------------------------------

    def worlds(self) -> Iterator[PushWorld]:
        """The states that explain what was seen so far."""
        for configuration in self.search.configurations:
            yield configuration.world

    def reach(self, at: Surroundings) -> Iterator[PushWorld]:
        """The states that the group may have come to by itself. Raises `SearchLimitExceeded`."""
        self.stepper.at = at
        for configuration in self.search.reach(at.now):
            yield configuration.world

    def change(self, change: Callable[[PushWorld], PushWorld]) -> None:
        """Something has happened, whatever the state of the group was."""
        found = (evolve(one, world=change(one.world)) for one in self.search.configurations)
        self.search.configurations = list(dict.fromkeys(found))

    def observe(
        self, see: Callable[[Configuration], Iterable[Configuration] | None], at: Surroundings
    ) -> frozenset[str] | None:
        """Keep the configurations that explain something that was seen; returns the rules on the way to it. None if
        there is none: then all stay. Raises `SearchLimitExceeded`."""
        self.stepper.at = at
        found = self.search.observe(see, at.now)
        if not found:
            return None
        rules = min((rules_on(one) for one in found), key=lambda rules: (len(rules), rules))
        self.rules.update(rules)
        self.search.configurations = list(dict.fromkeys(evolve(one, path=None) for one in found))
        self.changed_at = at.now
        return frozenset(rules)

    def on_registration(self, event: Event, pending: PendingRegistration) -> None:
        """A registration was sent."""
        operation = Operation(event.sequence + 1, event.api, 0, event.member, event.body, event.time)
        self.search.configurations = self.search.on_request(GroupOperation(operation, pending))
        self.changed_at = event.time

    def on_registered(self, event: Event, at: Surroundings) -> frozenset[str] | None:
        """A registration got its response."""
        handle = (event.of or 0) + 1
        part = self.search.open_operations.get(handle)
        if part is None:
            return None
        part.operation.response = event.body
        found = self.observe(lambda one: self.stepper.deliver(one, part), at)
        self.search.open_operations.pop(handle, None)
        return found

    def on_request(self, event: Event, member: "MemberFacts", at: Surroundings) -> frozenset[str] | None:
        """A consumer saw a Stop or Start."""
        number, partitions = attempt_in(event), partitions_in(event)

        def see(one: Configuration) -> Iterator[Configuration]:
            world = explain_request(one.world, member.registration, event.api, number, partitions)
            if world is not None:
                yield evolve(one, world=world)

        return self.observe(see, at)

    def on_response(self, event: Event, member: "MemberFacts", at: Surroundings) -> None:
        """A consumer responded to a Stop or Start: the coordinator has it before or after what it does by itself."""
        answer = member.registration, event.api, attempt_in(event), int(event.body.get("error_code", 0))
        self.stepper.at = late = replace(at, now=at.now + at.slack)
        found = (advance(one, *take_response(one.world, *answer)) for one in self.search.reach(late.now))
        self.search.configurations = list(dict.fromkeys(found))
        self.changed_at = at.now

    def forget(self, member: "MemberFacts") -> None:
        """A channel is gone, and what is under way on it."""
        self.change(lambda world: world.without(frozenset((member.registration,))))

    def on_removed(self, member: "MemberFacts", at: Surroundings) -> bool:
        """The coordinator has closed a channel: whether it may have removed the member, as it then has."""

        def see(one: Configuration) -> Iterator[Configuration]:
            if one.world.group is None or not one.world.group.has(*member.registration):
                yield one

        return self.observe(see, at) is not None

    # --- what is owed -------------------------------------------------------------------------------------------

    def settle(self, at: Surroundings) -> Configuration | None:
        """Let every explanation come to rest that must have by now. One in which the coordinator has sent or must still
        send something, if that is so in every one; what it may do only after a time that is not over does not count."""
        self.stepper.at = replace(at, now=at.now - 2 * at.slack, slack=0, expired=frozenset())
        settled = [self.run_on(one) for one in self.search.configurations]
        resting = [one for one in settled if not one.world.outbox and not one.predicted]
        if not resting:
            return min(settled, key=lambda one: len(rules_on(one)))
        # Those with something to be seen would have shown it by now.
        self.search.configurations = list(dict.fromkeys(resting))
        return None

    def run_on(self, one: Configuration) -> Configuration:
        """The first configuration on the way from `one` with something to be seen, else the one in which it rests."""
        seen, at = {one}, self.stepper.at
        while not (one.world.outbox or one.predicted or must_wait(one.world, at)):
            after = next((each for each in self.stepper.internal_steps(one, at.now, 0) if each not in seen), None)
            if after is None:
                break
            seen.add(after)
            one = after
        return one

    def is_early(self, at: Surroundings) -> bool:
        """Whether the next attempt has to wait, and nothing has changed that would be a reason for another one."""
        return any(
            world.group is not None
            and not world.group.changed
            and world.run is not None
            and (world.run.phase in WAITING or at.now < world.not_before - at.slack)
            for world in self.worlds()
        )

    def is_rebalancing(self, at: Surroundings) -> bool:
        """Whether a rebalance may be under way."""
        return any(world.run is not None for world in self.reach(at))

    # --- what its channels show ---------------------------------------------------------------------------------

    def add_trigger(self, *requirements: str) -> None:
        """Something has happened that a rebalance must follow."""
        self.triggers = {**dict.fromkeys(requirements), **self.triggers}

    def open_members(self) -> list[MemberFacts]:
        """The registrations with an open channel."""
        return [member for member in self.members.values() if member.is_open]

    def participants(self, number: int) -> list[MemberFacts]:
        """The members that saw the Stop of this attempt."""
        return [member for member in self.members.values() if member.stop == number and not member.is_past]

    def on_lost_coordinator(self, now: int, quiet: int) -> None:
        """Another coordinator begins with nothing, and waits for the consumers of the former one to run out."""
        self.begin(PushWorld(not_before=now + quiet, due=now + quiet))
        self.offsets.has_failed_over = True
        self.attempt = None
        for member in self.members.values():
            member.is_past = member.may_close = True

    def has_other(self, member: MemberFacts) -> bool:
        """Whether another registration with the member's id may be a member."""
        others = (each for each in self.members.values() if each is not member and not each.is_past)
        alike = (each for each in others if each.is_registered and each.consumer == member.consumer)
        return any(each.lease_end >= member.registered_at for each in alike)

    def on_joined(self, member: MemberFacts, slack: int, *, has_failed_over: bool) -> None:
        """A registration was accepted: a rebalance must follow."""
        now = member.registered_at
        others = [each for each in self.members.values() if each is not member and each.is_registered]
        is_known = any(each.consumer == member.consumer for each in others)
        is_alone = bool(others) and all(now > each.lease_end + 2 * slack for each in others)
        member.is_registered = True
        self.add_trigger(
            *(["PUSH-43"] if has_failed_over else []),
            *(["PUSH-36"] if is_known else []),
            *(["PUSH-33"] if is_alone else []),
            "PUSH-29",
        )

    def on_change(self, changed: Sequence[str], before: Mapping[str, tuple[str, ...]], now: int) -> None:
        """Topics have changed, some of which were not there `before`."""
        wanted = [each for each in changed if any(one.interest.matches(each) for one in self.open_members())]
        if wanted:
            is_new = any(topic not in before for topic in wanted)
            self.add_trigger(*(["PUSH-30", "PUSH-13"] if is_new else ["PUSH-14"]))

        def hear(world: PushWorld) -> PushWorld:
            members = () if world.group is None else world.group.members
            concerned = any(member.interest.matches(topic) for member in members for topic in changed)
            return replace(world, changes=world.changes + 1) if concerned else world

        self.change(hear)
        self.changed_at = now

    def shown_by(self, event: Event, rules: frozenset[str], *, knows_retries: bool) -> Iterator[str]:
        """The requirements that a Stop or Start which is explained by these rules shows to hold."""
        number = attempt_in(event)
        yield from ("PUSH-17", "PUSH-18", "PUSH-50", "PUSH-51")
        if event.api == "Stop":
            for rule in rules if knows_retries else rules - FAILURES:
                yield from RULE_EVIDENCE.get(rule, ())
            if number != self.attempt:
                self.attempt, self.begun_at = number, event.time
                yield from self.triggers
                self.triggers = {}
            return
        yield from ("PUSH-37", "PUSH-34")
        if sum(member.start == number for member in self.participants(number)) > 1:
            yield from ("PUSH-35", "PUSH-38", "PUSH-39")
        if any(self.offsets.earlier.values()):
            yield "PUSH-46"

    def partitions_wanted(self, topics: Mapping[str, tuple[str, ...]], number: int) -> set[Partition]:
        """The partitions of all topics that the members of an attempt want."""
        wanted = [member.interest for member in self.participants(number)]
        return {
            (topic, partition)
            for topic, partitions in topics.items()
            if any(interest.matches(topic) for interest in wanted)
            for partition in partitions
        }


def rules_on(configuration: Configuration) -> tuple[str, ...]:
    """The rules of the steps since the last observation."""
    rules, path = [], configuration.path
    while path is not None:
        if path.rule:
            rules.append(path.rule)
        path = path.previous
    return tuple(reversed(rules))
