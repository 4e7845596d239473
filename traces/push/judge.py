"""The judge of push: groups are searched for explanations, channels and lookups are held against their rules."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from fencepost.model.push.group import NO_INTEREST, RegisterRequest, StartRequest, UnusableInterest, parse_interest
from fencepost.model.push.specification import PUSH
from fencepost.model.push.wire import NO_COORDINATOR
from fencepost.traces.events import FAULT, INTERNAL, REQUEST, Event, Header, Operation
from fencepost.traces.judge.groups.group_judge import GroupFindings
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol
from fencepost.traces.judge.search.configuration import Configuration
from fencepost.traces.judge.search.stepper import SearchLimitExceeded
from fencepost.traces.push.group import FollowedGroup, MemberFacts, attempt_in, partitions_in, rules_on
from fencepost.traces.push.stepper import Partition, PendingRegistration, PushWorld, Surroundings
from fencepost.traces.verdict import CheckResult, CheckStatus, FieldDifference, Violation

Topics = Mapping[str, tuple[str, ...]]
DEFAULT_TICK_MS = 20
"""How late a coordinator may be without any grace: it looks at its schedule now and then."""


class PushDiagnosis(NamedTuple):
    """The requirement broken ("" if none speaks of it), the field, and what was expected and observed, in words."""

    requirement: str
    field: str
    expected: str
    observed: str
    rule: str = ""


class GroupName(NamedTuple):
    """The group that a request is about."""

    group: str


class PushProtocol(JudgedProtocol):
    """Judges a trace of push. An event that shows a violation ends the judging of its group."""

    specification = PUSH

    def __init__(self, header: Header) -> None:
        super().__init__(header)
        self.limits = header.limits
        self.slack = header.grace + header.limits.get("tick_ms", DEFAULT_TICK_MS)
        self.unseen_wait = 0 if header.clock == "virtual" else longest_turn(self.limits) or 0
        """How long a group may wait for one that the trace does not show: a real coordinator has other groups."""
        self.findings = GroupFindings()
        self.shown: dict[str, int] = {}
        """The requirements that the trace puts to the test, with the event that first shows each to hold."""
        self.broken: set[str] = set()
        """Those that it shows to be broken."""
        self.topics: list[tuple[int, Topics]] = []
        """The topics with their partitions, each from a moment on."""
        self.groups: dict[str, FollowedGroup] = {}
        self.owners: dict[int, FollowedGroup] = {}
        """The group of each connection on which a consumer registered."""
        self.lost_at: int | None = None
        """When the last coordinator was seen to lose its place."""
        self.losses = 0
        """How often that was."""
        self.suspect: tuple[Event, FollowedGroup] | None = None
        """A channel that the coordinator has closed for no reason, unless it is gone itself."""

    def new_follower(self) -> "PushProtocol":
        """The protocol follows its trace itself."""
        return self

    def requests_in(self, operation: Operation, groups: Iterable[str]) -> Iterator[GroupName]:
        """The group of the connection, once a consumer has registered on it."""
        group = self.owners.get(operation.connection)
        if group is not None:
            yield GroupName(group.name)

    # --- events -------------------------------------------------------------------------------------------------

    def on_event(self, event: Event) -> Iterator[Violation]:
        """The violations that an event shows."""
        group = self.owners.get(event.connection)
        try:
            yield from self.find_overdue(event)
            if event.kind is REQUEST:
                yield from self.on_request(event)
            elif event.kind is INTERNAL:
                self.on_internal(event)
            elif event.kind is FAULT:
                yield from self.on_fault(event)
            elif event.of is not None:
                yield from self.on_response(event)
        except SearchLimitExceeded as limit:
            for each in [group] if group is not None else self.groups.values():
                each.is_lost = True
                self.findings.inconclusive.append(f"group {each.name!r}: {limit}")

    def finish(self) -> Iterator[Violation]:
        """The violations that show at the end of the trace."""
        if self.suspect is not None:
            yield from self.settle_suspect()
        for group in self.groups.values():
            self.findings.rules.update(group.rules)

    def show(self, event: Event, *requirements: str) -> None:
        """An event shows that these requirements hold."""
        for each in requirements:
            self.shown.setdefault(each, event.sequence)

    def check_results(self) -> tuple[CheckResult, ...]:
        """A passed check for each requirement that was shown and not broken."""
        shown = sorted(self.shown.items())
        return tuple(CheckResult(id, at, CheckStatus.PASS) for id, at in shown if id not in self.broken)

    def surroundings(self, group: FollowedGroup, now: int, *, certainly: bool = False) -> Surroundings:
        """What is known at a moment; the leases that may be over, or those that `certainly` are."""
        margin = 2 * self.slack if certainly else -self.slack
        known = group.members.values()
        return Surroundings(
            now,
            self.slack,
            {topic: tuple((topic, name) for name in names) for topic, names in self.known_topics.items()},
            frozenset(member.registration for member in known if member.is_closed),
            frozenset(member.registration for member in known if now > member.lease_end + margin),
            self.limits.get("response_timeout_ms"),
            self.limits.get("backoff_ms"),
            self.limits.get("maximum_retries"),
        )

    @property
    def known_topics(self) -> Topics:
        """The topics with their partitions at present."""
        return self.topics[-1][1] if self.topics else {}

    def break_off(self, event: Event, group: FollowedGroup, found: PushDiagnosis) -> Violation:
        """The violation of a group, of which nothing more is said."""
        group.is_lost = True
        return self.violation(event, group.name, found)

    def violation(self, event: Event, group: str, found: PushDiagnosis) -> Violation:
        """What is wrong with an event, as a violation."""
        requirement, field, expected, observed, rule = found
        self.broken.add(requirement)
        return Violation(
            event.sequence,
            group,
            event.api,
            (field,),
            observed,
            (expected,),
            rule,
            PUSH.rules[rule].guard if rule else "",
            (requirement,) if requirement else (),
            kind=f"{event.api} {field} {requirement}",
            differences=(FieldDifference(field, expected, observed),),
        )

    # --- requests -----------------------------------------------------------------------------------------------

    def on_request(self, event: Event) -> Iterator[Violation]:
        """A consumer's registration, or a request of the coordinator."""
        if event.api == "RegisterConsumer":
            self.on_registration(event)
            return
        group = self.owners.get(event.connection)
        member = None if group is None else group.members.get(event.connection)
        if group is None or member is None or group.is_lost or member.is_closed:
            return
        if member.is_past and event.time > (self.lost_at or 0) + self.slack:
            told = "nothing from a coordinator that has lost its place"
            yield self.break_off(event, group, PushDiagnosis("PUSH-02", "request", told, event.api))
        elif event.api == "Ping":
            yield from self.on_ping(event, group, member)
        else:
            yield from self.on_command(event, group, member)

    def on_registration(self, event: Event) -> None:
        """A consumer asks to be registered."""
        body = event.body
        group = self.groups.get(body["group"])
        if group is None:
            group = self.groups[body["group"]] = FollowedGroup(body["group"])
            if self.lost_at is not None:
                quiet = self.lost_at + self.limits.get("max_session_timeout", 0)
                group.begin(PushWorld(not_before=quiet, due=quiet))
        timeout = int(body["session_timeout_ms"])
        may_be_accepted = not body.get("_elsewhere", False)
        try:
            interest = parse_interest(body["topic_count"])
        except UnusableInterest:
            interest, may_be_accepted = NO_INTEREST, False
        least, most = self.limits.get("min_session_timeout"), self.limits.get("max_session_timeout")
        is_known = least is not None and most is not None and self.lost_at is None
        if (least is not None and timeout <= least) or (most is not None and timeout > most):
            may_be_accepted = False
        request = RegisterRequest(body["consumer"], event.connection, interest, max(timeout, 1))
        may_be_refused = not (is_known and may_be_accepted)
        group.on_registration(event, PendingRegistration(request, may_be_accepted, may_be_refused))
        group.members[event.connection] = MemberFacts(
            body["consumer"], event.connection, interest, timeout, self.slack, event.time, event.time
        )
        self.owners[event.connection] = group

    def on_ping(self, event: Event, group: FollowedGroup, member: MemberFacts) -> Iterator[Violation]:
        """A consumer saw a ping."""
        at = self.surroundings(group, event.time)
        if member.held and all(world.holds(member.registration) for world in group.reach(at)):
            told = "none between a Stop and the end of its attempt"
            yield self.break_off(event, group, PushDiagnosis("PUSH-09", "ping", told, "a ping", "scheduler.ping"))
            return
        for found in member.on_ping(event.body, event.time):
            yield self.break_off(event, group, PushDiagnosis(*found, "scheduler.ping"))
            return
        self.findings.rules["scheduler.ping"] += 1
        self.show(event, "PUSH-50", "PUSH-51", *(("PUSH-07", "PUSH-08") if member.pings > 1 else ()))
        if member.unanswered > 1:
            self.show(event, "PUSH-12")

    def on_command(self, event: Event, group: FollowedGroup, member: MemberFacts) -> Iterator[Violation]:
        """A consumer saw a Stop or a Start."""
        at = self.surroundings(group, event.time)
        number, entries = attempt_in(event), event.body.get("partitions", ())
        # The topics of each moment that the snapshot of the attempt may be of.
        moments: list[tuple[int, Topics]] = [*self.topics, (event.time, {})]
        begun = group.begun_at - 2 * self.slack
        recent = [known for (_, known), (until, _) in pairwise(moments) if until >= begun]
        found = None
        if event.api == "Start":
            found = diagnose_start(event, group, member, recent, self.quiet_until, self.slack)
        rules = group.on_request(event, member, at)
        if found is None and rules is None:
            found = self.diagnose_unexplained(event, group, at)
        if found is not None or rules is None:
            yield self.break_off(event, group, found or PushDiagnosis("", event.api, "", ""))
            return
        if event.api == "Start":
            group.offsets.on_start(member.connection, entries)
            if group.offsets.has_failed_over:
                self.show(event, "PUSH-42")
        if member.held and event.api == "Start":
            self.show(event, "PUSH-09")
        member.on_command(event)
        missing = missing_partitions(group, number, recent) if entries else None
        if missing is not None and event.api == "Start":
            yield self.break_off(event, group, missing)
            return
        if group.held_up_since is not None:
            self.show(event, "PUSH-52")
        self.show(event, *group.shown_by(event, rules, knows_retries="maximum_retries" in self.limits))

    @property
    def quiet_until(self) -> int:
        """Until when a coordinator waits for the consumers of the one before, 0 if that is not known."""
        if self.lost_at is None or "max_session_timeout" not in self.limits:
            return 0
        return self.lost_at + self.limits["max_session_timeout"]

    def diagnose_unexplained(self, event: Event, group: FollowedGroup, at: Surroundings) -> PushDiagnosis:
        """The requirement that forbids what no explanation of the group has."""
        told = "nothing that follows from what was seen before"
        if event.time < self.quiet_until - self.slack:
            return PushDiagnosis("PUSH-42", "early", f"none before {self.quiet_until} ms", f"{event.time} ms")
        if event.api == "Start":
            behind = [one for one in group.open_members() if one.stop != event.body.get("attempt", 0)]
            return PushDiagnosis("PUSH-38" if behind else "PUSH-39", "order", told, "a Start", "rebalance.starting")
        if group.is_early(at):
            return PushDiagnosis("PUSH-21", "early", "a retry once the wait and the back-off are over", "a Stop before")
        if group.is_rebalancing(at):
            return PushDiagnosis("PUSH-18", "order", "the end of the attempt under way first", "another Stop")
        since = self.topics[-1][0] if self.topics else 0
        if self.topics and since and event.time <= since + 4 * self.slack:
            return PushDiagnosis(
                "PUSH-14", "group", "no rebalance of a group that wants none of what changed", "a Stop"
            )
        return PushDiagnosis("", "order", told, "a Stop")

    # --- responses ----------------------------------------------------------------------------------------------

    def on_response(self, event: Event) -> Iterator[Violation]:
        """The response to a lookup or registration, or a consumer's response."""
        if event.api == "ClusterMetadata":
            yield from self.on_metadata(event)
            return
        group = self.owners.get(event.connection)
        member = None if group is None else group.members.get(event.connection)
        if group is None or member is None or group.is_lost:
            return
        if event.api == "RegisterConsumer":
            yield from self.on_registered(event, group, member)
            return
        now, entries = event.time, event.body.get("partitions", ())
        member.heard_at = now
        if event.api == "Ping":
            member.on_ping_response(now)
        else:
            group.on_response(event, member, self.surroundings(group, now))
            member.on_response(event)
        group.offsets.on_report(member.connection, entries, now)

    def on_registered(self, event: Event, group: FollowedGroup, member: MemberFacts) -> Iterator[Violation]:
        """A consumer was accepted or refused."""
        at, error = self.surroundings(group, event.time), int(event.body["error_code"])
        if group.on_registered(event, at) is None:
            yield self.break_off(event, group, self.diagnose_registration(group, member, error))
            return
        self.show(event, "PUSH-25", "PUSH-50")
        if error:
            member.may_close = True
            if group.has_other(member):
                self.show(event, "PUSH-26")
            elif member.session_timeout <= self.limits.get("min_session_timeout", member.session_timeout):
                self.show(event, "PUSH-27")
            return
        group.on_joined(member, self.slack, has_failed_over=self.lost_at is not None)

    def diagnose_registration(self, group: FollowedGroup, member: MemberFacts, error: int) -> PushDiagnosis:
        """What is wrong with the response to a registration."""
        if error:
            return PushDiagnosis("PUSH-25", "error_code", "0: the id is new, and the timeout allowed", str(error))
        if group.has_other(member):
            return PushDiagnosis(
                "PUSH-26", "error_code", "an error: a live member has the id", "0", "register.duplicate"
            )
        told = f"an error: {member.session_timeout} ms is out of bounds"
        return PushDiagnosis("PUSH-27", "error_code", told, "0", "register.timeout-too-small")

    def on_metadata(self, event: Event) -> Iterator[Violation]:
        """A broker has told where the coordinator is."""
        body = event.body
        ids = [broker["id"] for broker in body["brokers"]]
        named = body["coordinator_id"]
        if named in ids if not body["error_code"] else named == NO_COORDINATOR or named not in ids:
            self.show(event, "PUSH-23", "PUSH-24", "PUSH-50")
            if self.losses and not body["error_code"]:
                self.show(event, "PUSH-03", *(["PUSH-06"] if self.losses > 1 else []))
            return
        expected = "one of the live brokers, or an error"
        yield self.violation(event, "", PushDiagnosis("PUSH-23", "coordinator_id", expected, str(named)))

    # --- what else happens --------------------------------------------------------------------------------------

    def on_internal(self, event: Event) -> None:
        """The kit tells what it did: the partitions there are, or that the coordinator loses its place."""
        if event.api == "partitions":
            before = self.known_topics
            topics = {topic: tuple(names) for topic, names in event.body["topics"].items()}
            self.topics.append((event.time, topics))
            changed = [topic for topic, names in topics.items() if before.get(topic) != names]
            for group in self.groups.values():
                group.on_change(changed, before, event.time)
                if self.losses and changed and before:
                    group.add_trigger("PUSH-05")
        elif event.api == "lost-coordinator":
            self.lost_at = event.time
            self.losses += 1
            quiet = self.limits.get("max_session_timeout", 0)
            for group in self.groups.values():
                group.on_lost_coordinator(event.time, quiet)

    def on_fault(self, event: Event) -> Iterator[Violation]:
        """A connection ended."""
        group = self.owners.get(event.connection)
        member = None if group is None else group.members.get(event.connection)
        if event.api == "malformed":
            name = group.name if group is not None else ""
            requirement = str(event.body.get("requirement", "PUSH-50"))
            told, seen = "a message of the protocol", str(event.body.get("reason", ""))
            if group is None or not group.is_lost:
                yield self.violation(event, name, PushDiagnosis(requirement, "frame", told, seen))
            if group is not None:
                group.is_lost = True
        if group is None or member is None or event.api not in ("closed", "drop"):
            return
        was_open = member.is_open
        member.is_closed, member.fetching = True, ()
        group.forget(member)
        if member.is_past and was_open and event.api == "closed":
            self.show(event, "PUSH-02", "PUSH-44")
        if event.api == "closed" and was_open and not member.may_close and not group.is_lost:
            at = self.surroundings(group, event.time)
            if group.on_removed(member, at):
                self.show(event, "PUSH-11")
                group.add_trigger("PUSH-11")
            elif self.suspect is None:
                self.suspect = event, group

    def settle_suspect(self) -> Iterator[Violation]:
        """A channel was closed for no reason, unless its coordinator has closed all the others as well."""
        assert self.suspect is not None
        (event, group), self.suspect = self.suspect, None
        known = [member for each in self.groups.values() for member in each.members.values()]
        if any(member.is_open and member.registered_at < event.time for member in known):
            told = "an open channel: its consumer has answered in time"
            yield self.break_off(event, group, PushDiagnosis("PUSH-11", "channel", told, "closed"))
            return
        for each in self.groups.values():
            each.on_lost_coordinator(0, 0)

    def find_overdue(self, event: Event) -> Iterator[Violation]:
        """What is overdue at the moment of an event."""
        now = event.time
        if self.suspect is not None and now > self.suspect[0].time + self.slack:
            yield from self.settle_suspect()
        for group in self.groups.values():
            if group.is_lost or now <= group.looked_at:
                continue
            group.looked_at = now
            found = self.overdue_of(group, now)
            if found is not None:
                yield self.break_off(event, group, found)

    def overdue_of(self, group: FollowedGroup, now: int) -> PushDiagnosis | None:
        """What is overdue in a group."""
        is_rebalancing = group.is_rebalancing(self.surroundings(group, now))
        for member in group.members.values():
            if is_rebalancing:
                member.freed_at = max(member.freed_at, now)
            if member.is_past:
                if member.is_open and now > (self.lost_at or 0) + 2 * self.slack:
                    return PushDiagnosis("PUSH-44", "channel", "closed: its coordinator has lost its place", "open")
            elif member.is_open and now > member.lease_end + 2 * self.slack + member.session_timeout // 3:
                told = f"closed after {member.session_timeout} ms without a response"
                return PushDiagnosis("PUSH-11", "channel", told, "open")
            elif member.is_open and not is_rebalancing and (due := member.overdue_ping(now)) is not None:
                return PushDiagnosis("PUSH-08" if member.pings else "PUSH-07", "ping", f"one at {due} ms", "none")
        at = self.surroundings(group, now, certainly=True)
        is_held_up, is_too_long = self.look_at_others(group, now)
        if (is_held_up and not is_too_long) or now <= group.changed_at + 2 * self.slack:
            return None
        owed = group.settle(at)
        if now <= group.changed_at + 2 * self.slack + self.unseen_wait:
            return None
        if owed is not None and is_too_long:
            return PushDiagnosis("PUSH-52", "late", "its turn once a slow group has had its retries", "nothing")
        return None if owed is None else name_owed(owed, group)

    def look_at_others(self, group: FollowedGroup, now: int) -> tuple[bool, bool]:
        """Whether a group may wait for the rebalance of another one in its queue, and whether that takes too long."""
        others = (each for each in self.groups.values() if each is not group and not each.is_lost)
        if not any(each.is_rebalancing(self.surroundings(each, now)) for each in others):
            if group.held_up_since is not None:
                group.held_up_since, group.changed_at = None, now
            return False, False
        if group.held_up_since is None:
            group.held_up_since = now
        turn = longest_turn(self.limits)
        return True, turn is not None and now > group.held_up_since + turn + 2 * self.slack


def longest_turn(limits: Mapping[str, int]) -> int | None:
    """For how long a group may keep the queue, with all its retries; None if the limits are not known."""
    known = [limits.get(name) for name in ("maximum_retries", "response_timeout_ms", "backoff_ms")]
    if None in known:
        return None
    retries, wait, backoff = (value or 0 for value in known)
    return (retries + 1) * (wait + backoff)


# Which requirement a Start breaks by what its channel and the others show, and which one a missing message does.


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
        if now < other.lease_end:
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
