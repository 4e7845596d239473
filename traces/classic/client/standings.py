"""The standings that a client may be in: the proved member (`model/classic/member`) as an acceptor.

Theory of operation. A trace shows when a response leaves, not when the client reads it, nor what its application and
its clocks have done. So there is a set of standings: one for each choice of what the client has read by now on each
connection, in order on a connection, and of what is its own affair. News that leaves is unread in every standing
(`tell`), and each standing has successors, in which the next news of one connection is read: what that makes of a
standing is what the proved member does. Where the protocol leaves something open, or the client may have closed the
connection, there is a successor for each choice. What the client does by itself, such as to leave silently, adds
standings (`also`).

A request is allowed if some standing sends it, and leaves only those (`narrow`) with their successors: a response
counts as told once only it explains what the client does. When time has passed in which the client was certainly not
held up, only standings are left that have read what is older than the grace (`settle`). If no standing sends a
request, that is a violation, and the target is believed: the set goes on with what the request shows.

Standings that differ in nothing but the words of their news are one, and news that changes nothing in any of them is
never unread, so that the set stays small.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from fencepost.model.assignors.group import TopicPartition
from fencepost.model.classic.catalogue.client import MEMBER_RULES
from fencepost.model.classic.core.state import (
    CommitResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinResponse,
    SyncResponse,
)
from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.member import Member, MemberSettings, MemberState, MemberStep
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.sorts import HandleNumber, MemberId
from fencepost.traces.classic.client.messages import MOVED, NO_GENERATION, describe_news, error_in, generation_in
from fencepost.traces.events import Event, Operation

NOBODY = core.new_member(MemberSettings(()), 0)
FIRST_HANDLE = HandleNumber(1)
KNOWN_ERRORS = frozenset(int(each) for each in Error)
LOST = frozenset(
    {
        *("member.join.id-required", "member.join.unknown-member", "member.illegal-generation"),
        *("member.unknown-member", "member.sync.illegal-generation", "member.sync.unknown-member"),
        "member.heartbeat.fenced",
    }
)
"""The rules by which a member has no generation any more, or none yet."""
ELSEWHERE = frozenset({Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.REQUEST_TIMED_OUT})
"""Errors after which a client may close its connection, whatever else is to come on it."""
EXCHANGE_APIS = ("JoinGroup", "SyncGroup")
MAY_REJOIN = MOVED | {Error.REBALANCE_IN_PROGRESS}
"""Errors of JoinGroup that cost no member id."""
OUT = frozenset({Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID})
"""Errors after which a generation is over. Some clients do not look whose commit it was."""
FENCED = "HBT-10"
"""What says that a static member is fenced."""


@dataclass(frozen=True, slots=True, eq=False)
class Tidings:
    """A response that has left, or the end of a connection on which there will be none.

    `assignment` is what SyncGroup brings, by the `protocol` that was chosen; `asks` is the requirement by which the
    client joins again because of it, where that is not just in the response. Where it `is_open`, a client may make
    something else of it: it refuses what it brings, loses its id with its generation, or takes no notice."""

    operation: Operation
    event: Event
    assignment: frozenset[TopicPartition] | None = None
    protocol: str = ""
    asks: str = ""
    is_open: bool = False
    is_loss: bool = False

    @property
    def words(self) -> str:
        """The news in words."""
        if self.is_loss:
            return f"the connection of its {self.operation.api} was closed"
        return describe_news(self.operation, self.event)


@dataclass(frozen=True, slots=True)
class Standing:
    """A membership as a client knows it.

    `assignment` is what it was told last, of the generation `assigned_in` by the protocol `assigned_by`, None if that
    is over. `requirement` says what its next JoinGroup carries, "" if none does. It has not read what is `unread`, and
    reads nothing more on connections that it has `closed`. `news`, in words, `sequence` and `time` are those of what
    it has read last that made a difference."""

    member: Member = NOBODY
    assignment: frozenset[TopicPartition] | None = None
    assigned_in: int = NO_GENERATION
    assigned_by: str = ""
    requirement: str = ""
    unread: tuple[Tidings, ...] = ()
    closed: frozenset[int] = frozenset()
    news: str = field(default="it has just started", compare=False)
    sequence: int = field(default=0, compare=False)
    time: int = field(default=0, compare=False)

    @property
    def member_id(self) -> str:
        """The member id that the next JoinGroup carries."""
        return self.member.id or ""

    @property
    def generation(self) -> int:
        """The generation that it was told last."""
        return self.member.generation

    @property
    def is_stable(self) -> bool:
        """Whether it was told the assignment of its generation, though it may have sent another JoinGroup since."""
        is_joining = self.member.state == MemberState.PREPARING_REBALANCE
        is_current = self.generation == self.assigned_in != NO_GENERATION
        return self.member.state == MemberState.STABLE or (is_joining and is_current)

    def awaits_sync(self, member_id: str, generation: int) -> bool:
        """Whether SyncGroup of this membership comes next."""
        is_next = self.member.state == MemberState.COMPLETING_REBALANCE and self.member.waiting < 0
        return is_next and (self.member_id, self.generation) == (member_id, generation)

    def sends(self, member_id: str, generation: int) -> bool:
        """Whether a Heartbeat of this membership is sent in this standing."""
        sent = (each.request for each in core.heartbeat(self.member, FIRST_HANDLE).sent_requests)
        requests = (each for each in sent if isinstance(each, HeartbeatRequest))
        return any((each.member or "", each.generation) == (member_id, generation) for each in requests)

    def is_current(self, operation: Operation) -> bool:
        """Whether the membership in a Heartbeat or OffsetCommit is the one that the client has (MEMBER-15)."""
        sender = MemberId(operation.body.get("member_id") or "") or None
        return bool(core.is_current(self.member, sender, generation_in(operation)))

    # --- What it becomes.

    def join(self, operation: Operation) -> Self:
        """The standing that has sent this JoinGroup, as whoever that says."""
        member = evolve(self.member, id=MemberId(operation.body["member_id"]) or None, waiting=0, rejoins=True)
        return replace(self, member=core.join(member, HandleNumber(operation.handle)).member)

    def sync(self, operation: Operation) -> Self:
        """The standing that has sent this SyncGroup, as whoever that says."""
        sender, state = MemberId(operation.body["member_id"]) or None, MemberState.COMPLETING_REBALANCE
        waiting, generation = HandleNumber(operation.handle), generation_in(operation)
        member = evolve(self.member, id=sender, generation=generation, waiting=waiting, state=state)
        return replace(self, member=member)

    def lose(self, requirement: str, news: str, sequence: int, time: int) -> Self:
        """The standing that is in no group, by its own doing."""
        told = replace(self, requirement=requirement, news=news, sequence=sequence, time=time)
        return replace(told, member=core.lose_membership(self.member), assignment=None)

    def miss(self, connection: int) -> Self:
        """The standing that never reads what it has not read yet on a connection."""
        return replace(self, unread=tuple(each for each in self.unread if each.event.connection != connection))

    def reopen(self, connection: int, handle: int) -> Self:
        """The standing that sends on a connection: if it had closed that, it has given up the exchange with this handle
        and will read nothing of what was under way."""
        if connection not in self.closed:
            return self
        member = core.disconnect(self.member).member if self.member.waiting == handle else self.member
        return replace(self.miss(connection), member=member, closed=self.closed - {connection})

    def read(self, news: Tidings) -> Iterator[Self]:
        """The standings that it becomes with this news: first what the proved member makes of it."""
        base = replace(self, unread=tuple(each for each in self.unread if each is not news))
        operation, member = news.operation, self.member
        if news.event.connection in self.closed or (news.is_loss and operation.api in EXCHANGE_APIS):
            yield base.miss_response(news)
            return
        step = MemberStep(member) if news.is_loss else step_on(member, operation, news.event)
        error = 0 if news.is_loss else error_in(news.event)
        told = replace(base, member=step.member)
        if step.rule != "member.late-answer":
            told = told.learn(requirement_of(step, news, error), news)
        if step.rule in LOST:
            told = replace(told, assignment=None)
        elif step.rule == "member.sync.answered" and news.asks != "MEMBER-20":  # else it keeps what it has
            told = replace(told, assignment=news.assignment, assigned_in=member.generation, assigned_by=news.protocol)
        yield told
        is_exchange = operation.api in EXCHANGE_APIS
        if error in ELSEWHERE:
            yield replace(told, closed=told.closed | {news.event.connection})
        if news.is_open and is_exchange:
            yield replace(base.learn("", news), member=evolve(member, waiting=0, rejoins=True))
        elif not is_exchange and error and not operation.body["member_id"]:
            yield base  # a request that names nobody tells of no membership
        elif news.is_open and error == Error.REBALANCE_IN_PROGRESS:
            yield base
        is_refused = step.rule.endswith(".refused") and error not in MAY_REJOIN
        is_own = not is_exchange and self.member_id == operation.body["member_id"] and error in OUT
        is_anybodys = operation.api == "OffsetCommit" and step.rule == "member.late-answer" and error in OUT
        if is_refused or (news.is_open and is_own) or is_anybodys:
            assignment = self.assignment if is_refused else None
            yield replace(told, member=core.lose_membership(told.member), assignment=assignment)

    def learn(self, requirement: str, news: Tidings) -> Self:
        """The standing with the requirement that news is about, if that makes a difference: who is in no group has
        nothing left to lose."""
        is_moved_out = requirement == "MEMBER-14" and self.generation == NO_GENERATION
        if news.operation.api not in EXCHANGE_APIS and (not requirement or is_moved_out):
            return self
        told = replace(self, requirement=requirement, news=news.words)
        return replace(told, sequence=news.event.sequence, time=news.event.time)

    def miss_response(self, news: Tidings) -> Self:
        """The standing that never reads this response, if it waits for that."""
        if self.member.waiting != news.operation.handle:
            return self
        return replace(self, member=core.disconnect(self.member).member).learn("MEMBER-14", news)


def step_on(member: Member, operation: Operation, event: Event) -> MemberStep:
    """What the proved member makes of a response to a request that it has sent, and by which rule."""
    body, handle, number = event.body, HandleNumber(operation.handle), error_in(event)
    error = Error(number) if number in KNOWN_ERRORS else Error.UNKNOWN_SERVER_ERROR
    sender = MemberId(operation.body["member_id"]) or None
    match operation.api:
        case "JoinGroup":
            told = JoinResponse(error, body.get("generation_id", NO_GENERATION), leader=body.get("leader"))
            told = evolve(told, member=body.get("member_id") or None)
            return core.on_join_response(member, handle, told, HandleNumber(-handle), ())
        case "SyncGroup":
            return core.on_sync_response(member, handle, SyncResponse(error))
        case "Heartbeat":
            sent = HeartbeatRequest(handle, sender, None, generation_in(operation))
            return core.on_heartbeat_response(member, sent, HeartbeatResponse(error))
    commit = CommitRequest(handle, sender, None, generation_in(operation))
    return core.on_commit_response(member, commit, CommitResponse(error))


def requirement_of(step: MemberStep, news: Tidings, error: int) -> str:
    """What says how a member joins after news that made a difference."""
    api = news.operation.api
    if news.is_loss or error in MOVED:
        return "MEMBER-14"
    if step.rule in LOST:
        return MEMBER_RULES[step.rule].requirements[0]
    if error == Error.REBALANCE_IN_PROGRESS and api in EXCHANGE_APIS:
        return "MEMBER-34" if api == "JoinGroup" else "MEMBER-11"
    return news.asks


def with_successors(standings: Iterable[Standing]) -> tuple[Standing, ...]:
    """These standings, and those that they become when the client reads on, each once."""
    found = dict.fromkeys(standings)
    todo = list(found)
    for standing in todo:
        for news in {each.event.connection: each for each in reversed(standing.unread)}.values():
            fresh = [each for each in standing.read(news) if each not in found]
            found.update(dict.fromkeys(fresh))
            todo += fresh
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The standings that a client may be in: those before it has read what is unread are first. `grace` in
    milliseconds."""

    grace: int
    standings: tuple[Standing, ...] = (Standing(requirement="MEMBER-02"),)
    former: Mapping[tuple[str, int], Standing] = field(default_factory=dict)
    """Standings that the client has certainly left behind, by their member ids and generations."""

    @property
    def latest(self) -> Standing:
        """The standing of a client that has read everything, and does as the proved member does."""
        return next(each for each in self.standings if not each.unread)

    def tell(self, news: Tidings) -> Self:
        """What it knows when there is news."""
        return self._with(replace(each, unread=(*each.unread, news)) for each in self.standings)

    def also(self, change: Callable[[Standing], Standing]) -> Self:
        """What it knows when it may have done something by itself."""
        return self._with((*self.standings, *map(change, self.standings)))

    def become(self, change: Callable[[Standing], Standing]) -> Self:
        """What it knows when it has certainly done something."""
        return self._with(map(change, self.standings))

    def settle(self, time: int) -> Self:
        """What it knows when everything has been read that is older than the grace."""
        return self.narrow(lambda each: all(news.event.time + self.grace > time for news in each.unread))

    def narrow(
        self, is_left: Callable[[Standing], bool], change: Callable[[Standing], Standing] = lambda each: each
    ) -> Self:
        """What it knows when it has done something in one of these standings, or in any, if there are none of these."""
        left = tuple(filter(is_left, self.standings)) or self.standings
        behind = [each for each in self.standings if each not in left and each.generation != NO_GENERATION]
        former = {(each.member_id, each.generation): each for each in behind}
        return replace(self, former={**self.former, **former})._with(map(change, left))

    def find(self, member_id: str, generation: int) -> Standing | None:
        """The latest standing with this membership that the client may have, None if there is none."""
        fitting = (each for each in reversed(self.standings) if each.sends(member_id, generation))
        return next(fitting, None)

    def allowed_partitions(self) -> frozenset[TopicPartition]:
        """All partitions that the client may hold to be its own."""
        return frozenset[TopicPartition]().union(*(each.assignment or () for each in self.standings))

    def _with(self, standings: Iterable[Standing]) -> Self:
        first = sorted(with_successors(standings), key=lambda each: -len(each.unread))
        return replace(self, standings=tuple(first))
