"""Which requirement a message of the coordinator breaks, by what its consumers saw; and which one it owes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fencepost.model.push.group import StartRequest
from fencepost.traces.events import Event
from fencepost.traces.judge.search.configuration import Configuration
from fencepost.traces.push.group import FollowedGroup, MemberFacts, attempt_in, partitions_in, rules_on
from fencepost.traces.push.stepper import Partition

Topics = Mapping[str, tuple[str, ...]]


class PushDiagnosis(NamedTuple):
    """The requirement broken ("" if none speaks of it), the field, and what was expected and observed, in words."""

    requirement: str
    field: str
    expected: str
    observed: str
    rule: str = ""


def diagnose_start(
    event: Event,
    group: FollowedGroup,
    member: MemberFacts,
    topics: Sequence[Topics],
    quiet_until: int,
    slack: int,
) -> PushDiagnosis | None:
    """What is wrong with a Start that a consumer saw; None if nothing is by what is known of the channels. `topics` are
    the partitions of each moment that the snapshot may be of."""
    number, partitions = attempt_in(event), partitions_in(event)
    if event.time < quiet_until - slack:
        told = f"none before {quiet_until} ms, when consumers of the coordinator before have certainly stopped"
        return PushDiagnosis("PUSH-42", "early", told, f"{event.time} ms")
    if member.stop != number or member.start == number:
        return PushDiagnosis("PUSH-37", "order", f"a Stop of attempt {number} on the channel first", "none since")
    found = unstopped_member(group, member, number) or still_fetching(group, member, number, partitions, event.time)
    if found is not None:
        return found
    found = wrong_partitions(group, member, number, partitions, topics)
    if found is not None:
        return found
    entries = event.body.get("partitions", ())
    for partition, expected, observed in group.offsets.wrong_offsets(entries, event.time, slack):
        return PushDiagnosis("PUSH-46", "offset", f"{expected} for {'/'.join(partition)}", str(observed))
    return None


def unstopped_member(group: FollowedGroup, member: MemberFacts, number: int) -> PushDiagnosis | None:
    """A member of the attempt whose fetchers may run, though a Start was sent."""
    for other in group.open_members():
        if other.stop == number and not other.has_stopped:
            told = f"none before {other.consumer} has answered the Stop of attempt {number}"
            if other.late_answers:
                return PushDiagnosis("PUSH-39", "order", told, "a Start after the answer to an earlier attempt")
            return PushDiagnosis("PUSH-38", "order", told, "a Start", "rebalance.starting")
        if other.stop != number and other.fetching:
            told = f"a Stop of attempt {number} for {other.consumer} first"
            return PushDiagnosis(
                "PUSH-41" if other.stop is not None and other.held else "PUSH-38", "order", told, "none"
            )
    return None


def still_fetching(
    group: FollowedGroup, member: MemberFacts, number: int, partitions: Sequence[Partition], now: int
) -> PushDiagnosis | None:
    """A consumer that may still fetch what is given to another: its lease is not over."""
    for other in group.members.values():
        common = set(other.fetching) & set(partitions)
        if other is member or not common or other.is_closed or other.start == number:
            continue
        if now < other.times.lease_end:
            told = f"none of {other.consumer}'s partitions before it has stopped"
            return PushDiagnosis("PUSH-42", "partitions", told, format_partitions(common))
    return None


def wrong_partitions(
    group: FollowedGroup,
    member: MemberFacts,
    number: int,
    partitions: Sequence[Partition],
    topics: Sequence[Topics],
) -> PushDiagnosis | None:
    """What is wrong with the partitions of a Start."""
    wanted = [group.partitions_wanted(each, number) for each in topics]
    if wanted and not any(set(partitions) <= each for each in wanted):
        strange = set(partitions) - set().union(*wanted)
        return PushDiagnosis(
            "PUSH-35", "partitions", "those of topics that its group wants", format_partitions(strange)
        )
    started = [other for other in group.participants(number) if other is not member and other.start == number]
    for other in started:
        common = set(other.share) & set(partitions)
        if common:
            is_all = set(other.share) <= set(partitions)
            told = f"none of those that {other.consumer} was given"
            return PushDiagnosis("PUSH-35" if is_all else "PUSH-34", "partitions", told, format_partitions(common))
    return None


def missing_partitions(group: FollowedGroup, number: int, topics: Sequence[Topics]) -> PushDiagnosis | None:
    """The partitions that nobody is given once every member of an attempt has its Start."""
    members = group.participants(number)
    wanted = [group.partitions_wanted(each, number) for each in topics]
    given = {partition for member in members if member.start == number for partition in member.share}
    if any(member.start != number for member in members) or not wanted or given in wanted:
        return None
    told = "every partition given to somebody"
    return PushDiagnosis("PUSH-34", "partitions", told, f"nobody has {format_partitions(wanted[-1] - given)}")


def name_owed(one: Configuration, group: FollowedGroup) -> PushDiagnosis:
    """The requirement that is broken where something is overdue that the coordinator sends in every explanation."""
    if one.predicted:
        return PushDiagnosis("PUSH-25", "response", "a response to the registration", "none")
    sending = one.world.outbox[0]
    name, rules = str(sending.consumer), rules_on(one)
    if isinstance(sending.message, StartRequest):
        return PushDiagnosis("PUSH-39", "response", f"a Start for {name}, as every member has stopped", "none")
    requirement = next(owed_by(rules), None) or next(iter(group.triggers), "")
    return PushDiagnosis(requirement, "response", f"a Stop for {name}, as the group has to be rebalanced", "none")


def owed_by(rules: Sequence[str]) -> Iterator[str]:
    """The requirement by which a Stop is owed, if a rule on the way to it says so."""
    if "rebalance.retried" in rules:
        yield "PUSH-41"
    if "rebalance.released" in rules:
        yield "PUSH-20"
    if "rebalance.again" in rules:
        yield "PUSH-15"


def format_partitions(partitions: set[Partition]) -> str:
    """Partitions in words."""
    return ", ".join("/".join(each) for each in sorted(partitions)) or "none"
