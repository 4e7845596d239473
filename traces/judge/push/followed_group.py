"""One group of a trace, with everything that is known of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fencepost.traces.events import Event
from fencepost.traces.judge.push.evidence import PushEvidence
from fencepost.traces.judge.push.group_worlds import GroupWorlds
from fencepost.traces.judge.push.member_facts import MemberFacts
from fencepost.traces.judge.push.offsets import GroupOffsets
from fencepost.traces.judge.push.world import Partition, PushWorld, Surroundings

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

    def credit(self, evidence: PushEvidence, event: Event, rules: frozenset[str], *, knows_retries: bool) -> None:
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
