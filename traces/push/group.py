"""One group of a trace, followed by the worlds that explain what its consumers saw."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fencepost.model.push.dialect import REPAIRED
from fencepost.model.push.group import (
    Interest,
    RebalancePhase,
    RegisterRequest,
    Registration,
    register_consumer,
    trigger_rebalance,
)
from fencepost.traces.events import Event
from fencepost.traces.push.facts import GroupOffsets, MemberFacts, ShownRequirements
from fencepost.traces.push.world import (
    Partition,
    PushWorld,
    Surroundings,
    explain_request,
    forget_closed,
    own_steps,
    take_response,
)

# Follows one group: keeps the worlds that explain what its consumers saw.


MAX_WORLDS = 4_000
WAITING = (RebalancePhase.WAIT_STOP, RebalancePhase.WAIT_START)


class TooManyWorlds(Exception):
    """Too many states explain what was seen."""


@dataclass(frozen=True, slots=True)
class PendingRegistration:
    """A registration that waits for its response, and what may become of it for reasons outside its group."""

    request: RegisterRequest
    may_be_accepted: bool
    may_be_refused: bool


@dataclass(slots=True)
class GroupWorlds:
    """The worlds of one group, and the registrations that wait for their responses."""

    worlds: tuple[PushWorld, ...] = (PushWorld(),)
    """Each once, in an order that is the same in every run."""
    pending: dict[int, PendingRegistration] = field(default_factory=dict)
    """By number."""
    changed_at: int = 0
    """When something last happened to the group that the coordinator may have to act on."""
    rules: Counter[str] = field(default_factory=Counter)

    def reset(self, not_before: int) -> None:
        """Another coordinator begins with nothing, and lets consumers of the one before run out first."""
        self.worlds = (PushWorld(not_before=not_before, due=not_before),)
        self.pending.clear()

    # --- what happens -------------------------------------------------------------------------------------------

    def close(self, at: Surroundings) -> Iterable[PushWorld]:
        """Every world that the coordinator may have come to by itself. Raises `TooManyWorlds`."""
        found = dict.fromkeys(self.worlds)
        queue = list(found)
        while queue:
            world = queue.pop()
            for after in (*own_steps(world, at), *self.handle_registrations(world, at)):
                if after not in found:
                    found[after] = None
                    queue.append(after)
            if len(found) > MAX_WORLDS:
                raise TooManyWorlds
        return found

    def handle_registrations(self, world: PushWorld, at: Surroundings) -> Iterator[PushWorld]:
        """The worlds after the coordinator has handled a registration that waits for its response."""
        handled = {number for number, _ in world.answers}
        for number, pending in self.pending.items():
            if number in handled:
                continue
            if pending.may_be_refused:
                yield replace(world, answers=world.answers | {(number, False)})
            if pending.may_be_accepted:
                request = pending.request
                exists = has_topics(request.interest, at.topics)
                # The bounds of session timeouts are looked at before: here the group alone is asked.
                group, step, rule, error = register_consumer(world.group, request, exists, 0, REPAIRED)
                told = replace(world, group=group, trail=(*world.trail, rule))
                told = replace(told, answers=world.answers | {(number, not error)})
                yield told if step is None else told.after(step)
                if step is None and not error and group is not None:
                    # A rebalance of nothing is not asked for, and harms nobody.
                    yield told.after(trigger_rebalance(group, REPAIRED))

    def keep(self, at: Surroundings, explain: Callable[[PushWorld], PushWorld | None]) -> frozenset[str] | None:
        """Keep the worlds in which something that was seen is explained; returns the rules on the way of one of them,
        None if there is none: then all worlds stay."""
        explained = [each for world in self.close(at) if (each := explain(world)) is not None]
        if not explained:
            return None
        shortest = min(explained, key=lambda world: (len(world.trail), world.trail))
        self.rules.update(shortest.trail)
        self.worlds = distinct(replace(world, trail=()) for world in explained)
        self.changed_at = at.now
        return frozenset(shortest.trail)

    def on_registered(self, number: int, is_accepted: bool, at: Surroundings) -> frozenset[str] | None:
        """A registration got its response."""
        answer = (number, is_accepted)

        def explain(world: PushWorld) -> PushWorld | None:
            return replace(world, answers=world.answers - {answer}) if answer in world.answers else None

        found = self.keep(at, explain)
        self.pending.pop(number, None)
        return found

    def on_request(
        self, registration: Registration, api: str, number: int, partitions: tuple[object, ...], at: Surroundings
    ) -> frozenset[str] | None:
        """A consumer saw a Stop or Start."""
        return self.keep(at, lambda world: explain_request(world, registration, api, number, partitions))

    def on_response(self, registration: Registration, api: str, number: int, error: int, at: Surroundings) -> None:
        """A consumer responded to a Stop or Start: the coordinator has it before or after what it does by itself."""
        late = replace(at, now=at.now + at.slack)
        worlds = [take_response(world, registration, api, number, error) for world in self.close(late)]
        self.worlds = distinct(worlds)
        self.changed_at = at.now

    def forget(self, registration: Registration) -> None:
        """A channel is gone, and what is under way on it."""
        closed = frozenset((registration,))
        self.worlds = distinct(forget_closed(world, closed) for world in self.worlds)

    def on_removed(self, registration: Registration, at: Surroundings) -> bool:
        """The coordinator has closed a channel: whether it may have removed the member, as it then has."""

        def explain(world: PushWorld) -> PushWorld | None:
            is_member = world.group is not None and world.group.has(*registration)
            return None if is_member else world

        return self.keep(at, explain) is not None

    def is_early(self, at: Surroundings) -> bool:
        """Whether the next attempt has to wait, and nothing has changed that would be a reason for another one."""
        return any(
            world.group is not None
            and not world.group.changed
            and world.run is not None
            and (world.run.phase in WAITING or at.now < world.not_before - at.slack)
            for world in self.worlds
        )

    def on_change(self, concerns: Callable[[PushWorld], bool], now: int) -> None:
        """Partitions have changed: the listener will hear of it."""
        self.worlds = distinct(
            replace(world, changes=world.changes + 1) if concerns(world) else world for world in self.worlds
        )
        self.changed_at = now

    # --- what is owed -------------------------------------------------------------------------------------------

    def settle(self, at: Surroundings) -> PushWorld | None:
        """Let every world come to rest that must have by now. A world in which the coordinator has sent or must still
        send something, if that is so in every one; what it may do only after a time that is not over does not count."""
        patient = replace(at, now=at.now - 2 * at.slack, expired=frozenset())
        advanced = [advance(world, patient) for world in self.worlds]
        resting = [world for world in advanced if not world.outbox and not world.answers]
        if not resting:
            return min(advanced, key=lambda world: len(world.trail))
        # Those with something to be seen would have shown it by now.
        self.worlds = distinct(resting)
        return None


def distinct(worlds: Iterable[PushWorld]) -> tuple[PushWorld, ...]:
    """Each world once, with the first of the ways that lead to it."""
    return tuple(dict.fromkeys(worlds))


def advance(world: PushWorld, at: Surroundings) -> PushWorld:
    """The first world on the way of this one with something to be seen, else the one in which it comes to rest."""
    seen = {world}
    while not (world.outbox or world.answers):
        after = next((each for each in forced_steps(world, at) if each not in seen), None)
        if after is None:
            return world
        seen.add(after)
        world = after
    return world


def forced_steps(world: PushWorld, at: Surroundings) -> Iterator[PushWorld]:
    """The steps that the coordinator must take by now: waits are over only once their time is known to be."""
    run = world.run
    if run is not None and run.phase in WAITING and not is_wait_over(world, at):
        return
    if (run is None or run.phase is RebalancePhase.COMPUTE) and at.now < world.due:
        return
    yield from own_steps(world, replace(at, slack=0))


def is_wait_over(world: PushWorld, at: Surroundings) -> bool:
    """Whether the wait for responses has lasted its whole time."""
    return at.response_timeout is not None and at.now >= world.since + at.response_timeout


def has_topics(interest: Interest, topics: Iterable[str]) -> bool:
    """Whether one of the topics exists."""
    return any(interest.matches(topic) for topic in topics)


# One group of a trace, with everything that is known of it.


RULE_EVIDENCE: Mapping[str, tuple[str, ...]] = {
    "rebalance.again": ("PUSH-15", "PUSH-19"),
    "rebalance.finished": ("PUSH-19",),
    "rebalance.released": ("PUSH-20",),
    "rebalance.retried": ("PUSH-21", "PUSH-41"),
}
"""The requirements that a rule on the way to a Stop shows to hold."""
FAILURES = frozenset({"rebalance.released", "rebalance.retried"})
"""The rules that say nothing where the limit of retries is not known."""


@dataclass(slots=True)
class FollowedGroup:
    """One group of a trace."""

    name: str
    worlds: GroupWorlds = field(default_factory=GroupWorlds)
    members: dict[int, MemberFacts] = field(default_factory=dict)
    """Those that registered, by the number of their connection."""
    offsets: GroupOffsets = field(default_factory=GroupOffsets)
    triggers: dict[str, None] = field(default_factory=dict)
    """The requirements that the next rebalance shows to hold, the most telling first."""
    attempt: int | None = None
    """The number of the newest attempt that was seen."""
    begun_at: int = 0
    """When its first Stop was seen."""
    looked_at: int = -1
    """When it was last looked at for what is overdue."""
    held_up_since: int | None = None
    """Since when a rebalance of another group may hold it up."""
    is_lost: bool = False
    """After a violation nothing more is said of it."""

    def add_trigger(self, *requirements: str) -> None:
        """Something has happened that a rebalance must follow."""
        self.triggers = {**dict.fromkeys(requirements), **self.triggers}

    def open_members(self) -> list[MemberFacts]:
        """The registrations with an open channel."""
        return [member for member in self.members.values() if member.is_open]

    def participants(self, number: int) -> list[MemberFacts]:
        """The members that saw the Stop of this attempt."""
        return [member for member in self.members.values() if member.stop == number and not member.is_past]

    def is_rebalancing(self, at: Surroundings) -> bool:
        """Whether a rebalance may be under way."""
        return any(world.run is not None for world in self.worlds.close(at))

    def on_lost_coordinator(self, now: int, quiet: int) -> None:
        """Another coordinator begins with nothing, and waits for the consumers of this one to run out."""
        self.worlds.reset(now + quiet)
        self.offsets.has_failed_over = True
        self.attempt = None
        for member in self.members.values():
            member.is_past = member.may_close = True

    def has_other(self, member: MemberFacts) -> bool:
        """Whether another registration with the id of this one may be a member."""
        others = (each for each in self.members.values() if each is not member and not each.is_past)
        alike = (each for each in others if each.is_registered and each.consumer == member.consumer)
        return any(each.times.lease_end >= member.times.registered_at for each in alike)

    def on_joined(self, member: MemberFacts, slack: int, *, has_failed_over: bool) -> None:
        """A registration was accepted: a rebalance must follow."""
        now = member.times.registered_at
        others = [each for each in self.members.values() if each is not member and each.is_registered]
        is_known = any(each.consumer == member.consumer for each in others)
        is_alone = bool(others) and all(now > each.times.lease_end + 2 * slack for each in others)
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

        def concerns(world: PushWorld) -> bool:
            members = () if world.group is None else world.group.members
            return any(member.interest.matches(topic) for member in members for topic in changed)

        self.worlds.on_change(concerns, now)

    def credit(self, evidence: ShownRequirements, event: Event, rules: frozenset[str], *, knows_retries: bool) -> None:
        """Note what a Stop or Start that is explained by these rules shows to hold."""
        number = int(event.body.get("attempt", 0))
        evidence.add(event, "PUSH-17", "PUSH-18", "PUSH-50", "PUSH-51")
        if event.api == "Stop":
            for rule in rules if knows_retries else rules - FAILURES:
                evidence.add(event, *RULE_EVIDENCE.get(rule, ()))
            if number != self.attempt:
                self.attempt, self.begun_at = number, event.time
                evidence.add(event, *self.triggers)
                self.triggers = {}
            return
        evidence.add(event, "PUSH-37")
        started = [member for member in self.participants(number) if member.start == number]
        evidence.add(event, "PUSH-34")
        if len(started) > 1:
            evidence.add(event, "PUSH-35", "PUSH-38", "PUSH-39")
        if any(self.offsets.earlier.values()):
            evidence.add(event, "PUSH-46")

    def partitions_wanted(self, topics: Mapping[str, tuple[str, ...]], number: int) -> set[Partition]:
        """The partitions of all topics that the members of an attempt want."""
        wanted = [member.interest for member in self.participants(number)]
        return {
            (topic, partition)
            for topic, partitions in topics.items()
            if any(interest.matches(topic) for interest in wanted)
            for partition in partitions
        }
