"""The Hypothesis state machine that draws schedules: a rule is an interaction of members or one perturbed request.

A rule chooses its moves by the simulation so far: the members of the group, those that wait, the leader. The names and
parameters of rules decide which schedules a seed gives: Hypothesis sorts rules by them.
"""

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from fencepost.conformance.schedules.classic.moves.cast import LONG, SHORT, MemberRole
from fencepost.conformance.schedules.classic.perturbations import MEMBER_PERTURBED, PERTURBED
from fencepost.conformance.schedules.classic.simulation import Simulation
from fencepost.conformance.schedules.schedule import Move, Schedule, Value

MEMBERS = 5
MAX_JOIN_ATTEMPTS = 3
"""How often a member sends JoinGroup until it has joined: one may lose it an old id, the next get it a new one."""
ACTOR = st.integers(0, MEMBERS - 1)
ACTORS = st.lists(ACTOR, min_size=1, max_size=MEMBERS, unique=True)
ROLE = st.builds(
    MemberRole,
    session=st.sampled_from((LONG, LONG, LONG, SHORT)),
    rebalance=st.sampled_from((SHORT, SHORT, SHORT, LONG)),
    offer=st.sampled_from(("a", "a", "ab", "ab", "ba")),
    instance=st.sampled_from((0, 0, 0, 1, 1, 2)),
)
API = st.sampled_from(("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit"))


class GroupMachine(RuleBasedStateMachine):
    """Draws one schedule. A subclass sets the scope, and collects the schedules."""

    simulation: Simulation
    restarts = True
    transactions = True
    virtual_time = True
    """Whether time is virtual, so that schedules can wait for any timer."""

    def start_simulation(self, cast: tuple[MemberRole, ...]) -> Simulation:
        """A new simulation for this cast."""
        raise NotImplementedError

    def collect(self, schedule: Schedule, simulation: Simulation) -> None:
        """Take a schedule that is complete."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.moves: list[Move] = []
        self.roles: tuple[MemberRole, ...] = ()

    @initialize(
        roles=st.lists(ROLE, min_size=MEMBERS, max_size=MEMBERS), dynamic=st.booleans(), size=st.integers(1, MEMBERS)
    )
    def cast_roles(self, roles: list[MemberRole], dynamic: bool, size: int) -> None:
        """Draw the roles; the first actors form a group."""
        if dynamic:
            roles = [MemberRole(role.session, role.rebalance, role.offer) for role in roles]
        self.roles = tuple(roles)
        self.simulation = self.start_simulation(self.roles)
        self.rebalance(range(min(size, 3)))

    def teardown(self) -> None:
        """End the schedule with requests that show the state of the group, and collect it."""
        if not self.roles:
            return
        self.probe_all()
        self.collect(Schedule("", self.roles, tuple(self.moves)), self.simulation)

    # --- making moves -------------------------------------------------------------------------------------------

    def make_move(self, kind: str, who: int = 0, *options: tuple[str, Value]) -> None:
        """Add a move to the schedule and to the simulation."""
        move = Move(kind, who, options)
        self.moves.append(move)
        self.simulation.make_move(move)

    def join_until_member(self, who: int) -> None:
        """Join, with a second request if the first only got an id."""
        for _ in range(MAX_JOIN_ATTEMPTS):
            if self.simulation.is_joining(who):
                return
            self.make_move("join", who)
            if self.simulation.is_member(who):
                return

    def rebalance(self, who: Iterable[int], leader_last: bool = True) -> None:
        """These actors and all members join, wait for the responses, and sync."""
        wanted = dict.fromkeys((*who, *self.simulation.members()))
        for each in wanted:
            self.join_until_member(each)
        self.wait_for_joins(wanted)
        self.sync_all(wanted, leader_last)

    def wait_for_joins(self, who: Iterable[int]) -> None:
        """Wait until the join phase is over, if one of these actors takes part."""
        if any(self.simulation.is_joining(each) for each in who):
            self.make_move("wait", 0, ("for", "answers"))

    def sync_all(self, who: Iterable[int], leader_last: bool = True) -> None:
        """Those of these actors that are in the generation sync."""
        for each in sorted(who, key=lambda one: self.simulation.is_leader(one) == leader_last):
            if self.simulation.is_member(each) and not self.simulation.is_joining(each):
                self.make_move("sync", each)

    def probe_all(self) -> None:
        """Send the requests that show the state of the group and of every actor."""
        for each in range(len(self.roles)):
            if self.simulation.has_id(each) and not self.simulation.is_joining(each):
                self.make_move("heartbeat", each)
        self.make_move("describe")
        self.make_move("fetch")

    def members(self) -> Sequence[int]:
        """The members of the group, or the first actor if it has none."""
        return self.simulation.members() or [0]

    def pick_member(self, number: int) -> int:
        """A member of the group by number."""
        found = self.members()
        return found[number % len(found)]

    # --- interactions of members --------------------------------------------------------------------------------

    @rule(who=ACTORS, leader_last=st.booleans())
    def rejoin(self, who: list[int], leader_last: bool) -> None:
        """All members join and sync."""
        self.rebalance(who, leader_last)

    @rule(late=ACTOR, how=st.sampled_from(("silent", "leave", "crash")))
    def rejoin_without(self, late: int, how: str) -> None:
        """All members but one rejoin; that one stays silent, leaves or crashes in the join phase."""
        absent = self.pick_member(late)
        others = [each for each in self.members() if each != absent]
        newcomer = next((each for each in range(MEMBERS) if each not in self.members()), 0)
        for each in (newcomer, *others):
            self.join_until_member(each)
        if how != "silent":
            self.make_move(how, absent)
        self.wait_for_joins((newcomer, *others))
        self.sync_all((newcomer, *others))
        self.act_as_zombie(absent)

    def act_as_zombie(self, who: int) -> None:
        """A member that was removed sends requests as before."""
        for kind in ("commit", "heartbeat", "sync"):
            self.make_move(kind, who)

    @rule(who=ACTOR)
    def zombie_commit(self, who: int) -> None:
        """A commit under a former member id."""
        self.make_move("commit", who, ("offset", 5))
        self.make_move("commit", who, ("as", "former"), ("offset", 6))
        self.make_move("fetch", 0, ("partition", 0))

    @rule(who=ACTOR, further=ACTOR)
    def crash_in_the_barrier(self, who: int, further: int) -> None:
        """A member crashes while the join phase waits."""
        self.join_until_member(further)
        lost = self.pick_member(who)
        self.join_until_member(lost)
        self.make_move("crash", lost)
        self.rebalance([further])

    @rule(how=st.sampled_from(("crash", "leave", "silent", "join")))
    def leader_lost(self, how: str) -> None:
        """The leader is lost between the join phase and its SyncGroup."""
        wanted = tuple(self.members())
        for each in wanted:
            self.join_until_member(each)
        self.make_move("join", wanted[0], ("metadata", 1))
        self.wait_for_joins(wanted)
        leader = next((each for each in wanted if self.simulation.is_leader(each)), wanted[0])
        for each in wanted:
            if each != leader:
                self.make_move("sync", each)
        if how == "join":
            self.make_move("join", leader, ("metadata", 2))
        elif how != "silent":
            self.make_move(how, leader)
        self.make_move("wait", 0, ("for", "rebalance"))
        for each in wanted:
            if not self.simulation.is_joining(each):
                self.make_move("heartbeat", each)

    @rule(who=ACTOR, sync=st.booleans())
    def restart_of_a_member(self, who: int, sync: bool) -> None:
        """A member's process crashes and starts again without its id, as that of a static member does."""
        lost = self.pick_member(who)
        self.make_move("crash", lost)
        self.join_until_member(lost)
        if sync:
            self.make_move("sync", lost)

    @rule()
    def rolling_restart(self) -> None:
        """The members crash and start again one after the other."""
        for each in tuple(self.members())[:3]:
            self.make_move("crash", each)
            self.join_until_member(each)
            self.make_move("sync", each)

    @rule(who=ACTOR)
    def replacement(self, who: int) -> None:
        """Another process claims a static member's instance id; the old one sends requests as before."""
        old = self.pick_member(who)
        self.make_move("join", old, ("as", "nobody"))
        for kind in ("heartbeat", "commit", "sync"):
            self.make_move(kind, old, ("as", "former"))
        self.make_move("join", old, ("as", "former"))

    @rule(first=st.sampled_from(("ab", "ba")), then=st.sampled_from(("b", "ba", "c")))
    def upgrade(self, first: str, then: str) -> None:
        """The members change to another protocol, one after the other."""
        for offer in (first, then):
            for each in self.members():
                self.make_move("join", each, ("offer", offer))
            self.rebalance(())

    @rule(who=ACTORS)
    def newcomers(self, who: list[int]) -> None:
        """Some actors join; the members do not rejoin."""
        for each in who:
            self.join_until_member(each)

    @rule(who=ACTORS, reverse=st.booleans())
    def some_sync(self, who: list[int], reverse: bool) -> None:
        """Some actors sync, one after the other."""
        for each in sorted(who, reverse=reverse):
            self.make_move("sync", each)

    @rule(who=ACTOR, batch=st.booleans())
    def leave(self, who: int, batch: bool) -> None:
        """One or two members leave; the others heartbeat."""
        gone = self.pick_member(who)
        pair = self.pick_member(who + 1)
        if batch and pair != gone:
            self.make_move("leave", gone, ("with", pair))
        else:
            self.make_move("leave", gone)
        for each in self.members():
            if not self.simulation.is_joining(each):
                self.make_move("heartbeat", each)

    @rule()
    def everybody_leaves(self) -> None:
        """All members leave, and the empty group gets a commit."""
        for each in tuple(self.members()):
            self.make_move("leave", each)
        self.make_move("commit", 0, ("as", "nobody"), ("generation", "none"), ("offset", 3))
        self.make_move("fetch")

    # --- single requests ----------------------------------------------------------------------------------------

    @rule(who=ACTOR, kind=st.sampled_from(("join", "sync", "heartbeat", "commit", "leave")))
    def plainly(self, who: int, kind: str) -> None:
        """A request of a well-behaved member."""
        self.make_move(kind, who)

    @rule(who=ACTOR, found=PERTURBED)
    def oddly(self, who: int, found: tuple[str, tuple[tuple[str, Value], ...]]) -> None:
        """A perturbed request of any actor."""
        kind, options = found
        self.make_move(kind, who, *options)

    @rule(who=ACTOR, found=MEMBER_PERTURBED)
    def odd_member(self, who: int, found: tuple[str, tuple[tuple[str, Value], ...]]) -> None:
        """A perturbed request of a member, followed by a Heartbeat."""
        kind, options = found
        one = self.pick_member(who)
        self.make_move(kind, one, *options)
        self.make_move("heartbeat", one)

    @rule(who=ACTOR, api=API, depth=st.integers(0, 1))
    def once_more(self, who: int, api: str, depth: int) -> None:
        """A request is sent a second time: the last one of its API, or the one before."""
        self.make_move("again", self.pick_member(who), ("api", api), ("depth", depth))

    @rule(who=ACTOR, partition=st.integers(0, 2), offset=st.integers(0, 9))
    def commit_and_fetch(self, who: int, partition: int, offset: int) -> None:
        """An offset is committed and fetched."""
        self.make_move("commit", self.pick_member(who), ("partition", partition), ("offset", offset))
        self.make_move("fetch", 0, ("partition", partition))

    @rule(offset=st.integers(0, 9))
    def simple_commit(self, offset: int) -> None:
        """A commit without a member id."""
        self.make_move("commit", 0, ("as", "nobody"), ("generation", "none"), ("instance", "none"), ("offset", offset))

    @rule(who=ACTOR, api=st.sampled_from(("JoinGroup", "SyncGroup", "")))
    def cut(self, who: int, api: str) -> None:
        """A connection is cut while its request waits for the response."""
        self.make_move("drop", who, ("api", api))

    @rule(delete=st.booleans())
    def administrate(self, delete: bool) -> None:
        """An administrator lists groups, describes or deletes the group, and deletes offsets."""
        self.make_move("list")
        self.make_move("delete" if delete else "describe")
        self.make_move("delete-offsets")

    @precondition(lambda self: self.transactions)
    @rule(who=ACTOR, abort=st.booleans(), offset=st.integers(0, 9), plain=st.booleans())
    def transaction(self, who: int, abort: bool, offset: int, plain: bool) -> None:
        """Offsets are committed in a transaction."""
        pairs = (("as", "nobody"), ("generation", "none"), ("instance", "none")) if plain else ()
        self.make_move("transact", self.pick_member(who), *pairs, ("offset", offset))
        self.make_move("fetch", 0, ("stable", 1))
        self.make_move("end", 0, *((("abort", 1),) if abort else ()))
        self.make_move("fetch", 0, ("stable", 1))

    # --- time and failures --------------------------------------------------------------------------------------

    @rule(who=ACTOR, late=st.booleans(), then=st.sampled_from(("heartbeat", "commit", "join", "sync")))
    def session(self, who: int, late: bool, then: str) -> None:
        """A member is silent until just before the end of its session or past it, then sends a request."""
        one = self.pick_member(who)
        if self.virtual_time or self.roles[one].session == SHORT:
            self.make_move("wait", one, ("for", "session"), ("side", 1 if late else -1))
        self.make_move(then, one)

    @rule(which=st.sampled_from(("rebalance", "delay", "step")), late=st.booleans())
    def deadline(self, which: str, late: bool) -> None:
        """Time passes until just before a deadline or past it."""
        self.make_move("wait", 0, ("for", which), ("side", 1 if late else -1))
        self.make_move("heartbeat", self.pick_member(0))

    @precondition(lambda self: self.virtual_time)
    @rule(which=st.sampled_from(("new-member", "retention")))
    def long_wait(self, which: str) -> None:
        """The time limit of a first JoinGroup or the retention of offsets passes."""
        self.make_move("wait", 0, ("for", which), ("side", 1))

    @precondition(lambda self: self.restarts and not any(each.kind == "restart" for each in self.moves))
    @rule()
    def restart_of_the_target(self) -> None:
        """The target is killed and started again; members send requests as before."""
        self.make_move("restart")
        self.probe_all()
