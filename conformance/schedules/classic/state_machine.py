"""The state machine that draws schedules: each rule a thing that members do together, or one request with a twist.

What a rule does depends on what the model foretells: who is in the group by then, who waits, who leads.
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
"""How often a member that is to join sends JoinGroup: the first may cost it an old id, the next get it a new one."""
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
    """Draws one schedule. Subclasses say where it goes and what the target is."""

    simulation: Simulation
    restarts = True
    transactions = True
    virtual_time = True
    """Time is virtual, so that any timer can be waited for."""

    def start_simulation(self, cast: tuple[MemberRole, ...]) -> Simulation:
        """The forecast for this cast."""
        raise NotImplementedError

    def collect(self, schedule: Schedule, simulation: Simulation) -> None:
        """The schedule is drawn."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.moves: list[Move] = []
        self.roles: tuple[MemberRole, ...] = ()

    @initialize(
        roles=st.lists(ROLE, min_size=MEMBERS, max_size=MEMBERS), dynamic=st.booleans(), size=st.integers(1, MEMBERS)
    )
    def cast_roles(self, roles: list[MemberRole], dynamic: bool, size: int) -> None:
        """Who takes part, and the first of them form a group."""
        if dynamic:
            roles = [MemberRole(role.session, role.rebalance, role.offer) for role in roles]
        self.roles = tuple(roles)
        self.simulation = self.start_simulation(self.roles)
        self.rebalance(range(min(size, 3)))

    def teardown(self) -> None:
        """Look at everything once more, and hand the schedule over."""
        if not self.roles:
            return
        self.probe_all()
        self.collect(Schedule("", self.roles, tuple(self.moves)), self.simulation)

    # --- making moves -------------------------------------------------------------------------------------------

    def make_move(self, kind: str, who: int = 0, *options: tuple[str, Value]) -> None:
        """Make a move, and see what comes of it."""
        one = Move(kind, who, options)
        self.moves.append(one)
        self.simulation.make_move(one)

    def join_until_member(self, who: int) -> None:
        """Join, with a second request if the first only got an id."""
        for _ in range(MAX_JOIN_ATTEMPTS):
            if self.simulation.is_joining(who):
                return
            self.make_move("join", who)
            if self.simulation.is_member(who):
                return

    def rebalance(self, who: Iterable[int], leader_last: bool = True) -> None:
        """These and all others who are in the group join, and sync when they are answered."""
        wanted = dict.fromkeys((*who, *self.simulation.members()))
        for each in wanted:
            self.join_until_member(each)
        self.wait_for_joins(wanted)
        self.sync_all(wanted, leader_last)

    def wait_for_joins(self, who: Iterable[int]) -> None:
        """Wait as long as it takes until the join phase is over."""
        if any(self.simulation.is_joining(each) for each in who):
            self.make_move("wait", 0, ("for", "answers"))

    def sync_all(self, who: Iterable[int], leader_last: bool = True) -> None:
        """Those who are in the generation sync."""
        for each in sorted(who, key=lambda one: self.simulation.is_leader(one) == leader_last):
            if self.simulation.is_member(each) and not self.simulation.is_joining(each):
                self.make_move("sync", each)

    def probe_all(self) -> None:
        """See what everybody is told now."""
        for each in range(len(self.roles)):
            if self.simulation.has_id(each) and not self.simulation.is_joining(each):
                self.make_move("heartbeat", each)
        self.make_move("describe")
        self.make_move("fetch")

    def members(self) -> Sequence[int]:
        """Who is in the group, or somebody."""
        return self.simulation.members() or [0]

    def pick_member(self, number: int) -> int:
        """Somebody in the group."""
        found = self.members()
        return found[number % len(found)]

    # --- what members do together -------------------------------------------------------------------------------

    @rule(who=ACTORS, leader_last=st.booleans())
    def rejoin(self, who: list[int], leader_last: bool) -> None:
        """Everybody joins and syncs."""
        self.rebalance(who, leader_last)

    @rule(late=ACTOR, how=st.sampled_from(("silent", "leave", "crash")))
    def rejoin_without(self, late: int, how: str) -> None:
        """Everybody but one rejoins; that one is waited for in vain, or goes meanwhile."""
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
        """Somebody who was given up goes on as if nothing had happened."""
        for kind in ("commit", "heartbeat", "sync"):
            self.make_move(kind, who)

    @rule(who=ACTOR)
    def zombie_commit(self, who: int) -> None:
        """A commit out of an earlier life."""
        self.make_move("commit", who, ("offset", 5))
        self.make_move("commit", who, ("as", "former"), ("offset", 6))
        self.make_move("fetch", 0, ("partition", 0))

    @rule(who=ACTOR, further=ACTOR)
    def crash_in_the_barrier(self, who: int, further: int) -> None:
        """Somebody goes down while the join phase waits."""
        self.join_until_member(further)
        lost = self.pick_member(who)
        self.join_until_member(lost)
        self.make_move("crash", lost)
        self.rebalance([further])

    @rule(how=st.sampled_from(("crash", "leave", "silent", "join")))
    def leader_lost(self, how: str) -> None:
        """The leader goes between the join phase and its SyncGroup."""
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
        """A member's process goes down and comes back, as a static member does without its id."""
        lost = self.pick_member(who)
        self.make_move("crash", lost)
        self.join_until_member(lost)
        if sync:
            self.make_move("sync", lost)

    @rule()
    def rolling_restart(self) -> None:
        """One member after the other goes down and comes back."""
        for each in tuple(self.members())[:3]:
            self.make_move("crash", each)
            self.join_until_member(each)
            self.make_move("sync", each)

    @rule(who=ACTOR)
    def replacement(self, who: int) -> None:
        """Another process claims a static member's instance id; the old one goes on."""
        old = self.pick_member(who)
        self.make_move("join", old, ("as", "nobody"))
        for kind in ("heartbeat", "commit", "sync"):
            self.make_move(kind, old, ("as", "former"))
        self.make_move("join", old, ("as", "former"))

    @rule(first=st.sampled_from(("ab", "ba")), then=st.sampled_from(("b", "ba", "c")))
    def upgrade(self, first: str, then: str) -> None:
        """The members go over to another protocol, one after the other."""
        for offer in (first, then):
            for each in self.members():
                self.make_move("join", each, ("offer", offer))
            self.rebalance(())

    @rule(who=ACTORS)
    def newcomers(self, who: list[int]) -> None:
        """Some join, and nobody does anything about it yet."""
        for each in who:
            self.join_until_member(each)

    @rule(who=ACTORS, reverse=st.booleans())
    def some_sync(self, who: list[int], reverse: bool) -> None:
        """Some sync, one after the other."""
        for each in sorted(who, reverse=reverse):
            self.make_move("sync", each)

    @rule(who=ACTOR, batch=st.booleans())
    def leave(self, who: int, batch: bool) -> None:
        """One or two leave; the others are told."""
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
        """The group becomes empty."""
        for each in tuple(self.members()):
            self.make_move("leave", each)
        self.make_move("commit", 0, ("as", "nobody"), ("generation", "none"), ("offset", 3))
        self.make_move("fetch")

    # --- single requests ----------------------------------------------------------------------------------------

    @rule(who=ACTOR, kind=st.sampled_from(("join", "sync", "heartbeat", "commit", "leave")))
    def plainly(self, who: int, kind: str) -> None:
        """A request as a member that means well sends it."""
        self.make_move(kind, who)

    @rule(who=ACTOR, found=PERTURBED)
    def oddly(self, who: int, found: tuple[str, tuple[tuple[str, Value], ...]]) -> None:
        """A request that is not quite what a member would send."""
        kind, options = found
        self.make_move(kind, who, *options)

    @rule(who=ACTOR, found=MEMBER_PERTURBED)
    def odd_member(self, who: int, found: tuple[str, tuple[tuple[str, Value], ...]]) -> None:
        """Somebody in the group does something odd, and carries on."""
        kind, options = found
        one = self.pick_member(who)
        self.make_move(kind, one, *options)
        self.make_move("heartbeat", one)

    @rule(who=ACTOR, api=API, depth=st.integers(0, 1))
    def once_more(self, who: int, api: str, depth: int) -> None:
        """A request is sent a second time, at once or late."""
        self.make_move("again", self.pick_member(who), ("api", api), ("depth", depth))

    @rule(who=ACTOR, partition=st.integers(0, 2), offset=st.integers(0, 9))
    def commit_and_fetch(self, who: int, partition: int, offset: int) -> None:
        """An offset is committed and read."""
        self.make_move("commit", self.pick_member(who), ("partition", partition), ("offset", offset))
        self.make_move("fetch", 0, ("partition", partition))

    @rule(offset=st.integers(0, 9))
    def simple_commit(self, offset: int) -> None:
        """Somebody outside the group commits."""
        self.make_move("commit", 0, ("as", "nobody"), ("generation", "none"), ("instance", "none"), ("offset", offset))

    @rule(who=ACTOR, api=st.sampled_from(("JoinGroup", "SyncGroup", "")))
    def cut(self, who: int, api: str) -> None:
        """A connection is cut while its request waits."""
        self.make_move("drop", who, ("api", api))

    @rule(delete=st.booleans())
    def administrate(self, delete: bool) -> None:
        """Somebody looks at the group, and may want it gone."""
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
        """A member is silent until just before its session ends, or until it is over."""
        one = self.pick_member(who)
        if self.virtual_time or self.roles[one].session == SHORT:
            self.make_move("wait", one, ("for", "session"), ("side", 1 if late else -1))
        self.make_move(then, one)

    @rule(which=st.sampled_from(("rebalance", "delay", "step")), late=st.booleans())
    def deadline(self, which: str, late: bool) -> None:
        """Time passes until just before a deadline, or past it."""
        self.make_move("wait", 0, ("for", which), ("side", 1 if late else -1))
        self.make_move("heartbeat", self.pick_member(0))

    @precondition(lambda self: self.virtual_time)
    @rule(which=st.sampled_from(("new-member", "retention")))
    def long_wait(self, which: str) -> None:
        """A very long time passes."""
        self.make_move("wait", 0, ("for", which), ("side", 1))

    @precondition(lambda self: self.restarts and not any(each.kind == "restart" for each in self.moves))
    @rule()
    def restart_of_the_target(self) -> None:
        """The target goes down and comes back; members go on."""
        self.make_move("restart")
        self.probe_all()
