"""Rules of several steps in a fixed order, most of them with time between the steps.

Each leads to a situation in which timers, restarts or old clients went wrong in a real coordinator, and which single
requests hardly ever reach. Names and parameters of rules decide which schedules a seed gives.
"""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from fencepost.conformance.schedules.classic.moves.cast import SHORT
from fencepost.conformance.schedules.classic.perturbations import perturbed_options
from fencepost.conformance.schedules.classic.state_machine import ACTOR, ACTORS, MEMBERS, GroupMachine

SESSION_EXTENDERS = st.sampled_from(("heartbeat", "commit"))
HEARTBEAT_INTERVAL_MS = 50_000
"""How often members with long sessions heartbeat."""
MAX_RESTARTS = 3


class MultiStepRules(GroupMachine):
    """The state machine with rules of several steps."""

    def count_restarts(self) -> int:
        """The number of restarts of the target so far."""
        return sum(move.kind == "restart" for move in self.moves)

    def pick_newcomer(self) -> int:
        """The first actor that is not a member; the first of all if there is none."""
        return next((each for each in range(MEMBERS) if each not in self.members()), 0)

    def heartbeat_all(self) -> None:
        """All members that do not wait for a response to JoinGroup heartbeat."""
        for each in self.members():
            if not self.simulation.is_joining(each):
                self.make_move("heartbeat", each)

    def has_time_left(self) -> bool:
        """Time is virtual, and the schedule has not waited for minutes yet."""
        return self.virtual_time and all(move.get("ms") != HEARTBEAT_INTERVAL_MS for move in self.moves)

    def keep_heartbeating(self, times: int) -> None:
        """Time passes while the members heartbeat."""
        for _ in range(times):
            self.make_move("wait", 0, ("for", "while"), ("ms", HEARTBEAT_INTERVAL_MS))
            self.heartbeat_all()

    @rule(who=ACTOR, how=SESSION_EXTENDERS, times=st.integers(2, 3))
    def last_minute(self, who: int, how: str, times: int) -> None:
        """A member extends its session several times just before it ends."""
        one = self.pick_member(who)
        if self.virtual_time or self.roles[one].session == SHORT:
            for _ in range(times):
                self.make_move("wait", one, ("for", "session"), ("side", -1))
                self.make_move(how, one)
            self.make_move("heartbeat", one)

    @rule(who=ACTORS, which=st.sampled_from(("rebalance", "session", "delay")))
    def afterwards(self, who: list[int], which: str) -> None:
        """The members rebalance, and timers that may still be armed come due."""
        self.rebalance(who)
        self.make_move("wait", who[0], ("for", which), ("side", 1))
        self.heartbeat_all()

    @rule(who=ACTOR)
    def after_a_loss(self, who: int) -> None:
        """A member that did not rejoin is removed, and then its session would have ended."""
        self.rejoin_without(who, "silent")
        self.make_move("wait", 0, ("for", "while"), ("ms", 2_000))
        self.heartbeat_all()

    @rule(session=st.booleans())
    def unused_id(self, session: bool) -> None:
        """A newcomer gets an id and never uses it; the members rejoin, and wait no longer than its session."""
        lost = self.pick_newcomer()
        self.make_move("join", lost, ("as", "nobody"), ("session", SHORT))
        others = [each for each in self.members() if each != lost]
        self.make_move("join", others[0] if others else 0, ("metadata", 1))
        for each in others:
            self.join_until_member(each)
        if session:
            self.make_move("wait", lost, ("for", "session"), ("side", 1))
        self.heartbeat_all()

    @rule(who=ACTORS, session=st.booleans())
    def parked_for_long(self, who: list[int], session: bool) -> None:
        """Members wait in the join phase for longer than their sessions last."""
        absent = self.pick_member(0)
        for each in who:
            if each != absent:
                self.make_move("join", each, ("session", SHORT), ("metadata", 2))
                self.join_until_member(each)
        self.make_move("wait", who[0], ("for", "session" if session else "rebalance"), ("side", 1))
        self.join_until_member(absent)
        self.heartbeat_all()

    @rule(who=ACTORS, version=st.integers(0, 3))
    def old_clients(self, who: list[int], version: int) -> None:
        """Members with an old client form a generation; then another one joins."""
        for each in who:
            self.make_move("join", each, ("version", version))
        self.wait_for_joins(who)
        self.sync_all(who)
        self.make_move("join", self.pick_newcomer(), ("version", version))
        self.heartbeat_all()

    @rule(who=ACTOR, odd=perturbed_options("commit"), partition=st.integers(0, 2))
    def odd_commit(self, who: int, odd: tuple[tuple[str, int | str], ...], partition: int) -> None:
        """A perturbed commit, followed by a fetch of the partition."""
        self.make_move(
            "commit", self.pick_member(who), *(pair for pair in odd if pair[0] != "partition"), ("partition", partition)
        )
        self.make_move("fetch", 0, ("partition", partition), ("stable", 1))

    @rule(who=ACTOR, further=st.booleans())
    def too_long(self, who: int, further: bool) -> None:
        """A commit whose metadata is too long, followed by a fetch of stable offsets, which need not wait for it."""
        self.make_move("commit", self.pick_member(who), ("note", "long"), *((("further", 1),) if further else ()))
        self.make_move("fetch", 0, ("partition", 0), ("stable", 1))

    @rule(odd=perturbed_options("join"))
    def first_of_all(self, odd: tuple[tuple[str, int | str], ...]) -> None:
        """An empty group gets a perturbed JoinGroup."""
        for each in tuple(self.members()):
            self.make_move("leave", each)
        self.make_move("join", 0, ("as", "nobody"), *(pair for pair in odd if pair[0] != "as"))
        self.wait_for_joins((0,))

    @precondition(has_time_left)
    @rule(version=st.integers(0, 9))
    def five_minutes(self, version: int) -> None:
        """A member stays in the group for longer than the time limit of a first JoinGroup."""
        one = self.pick_newcomer()
        self.make_move("join", one, ("version", version), ("session", "long"))
        self.rebalance((one,))
        self.keep_heartbeating(7)

    @precondition(has_time_left)
    @rule(dropped=st.booleans())
    def endless_round(self, dropped: bool) -> None:
        """A rebalance lasts for more than five minutes: its leader has that timeout, and only heartbeats."""
        leader = self.pick_member(0)
        self.make_move("join", leader, ("rebalance", "endless"), ("session", "long"), ("metadata", 3))
        self.rebalance(())
        self.make_move("commit", leader, ("offset", 4))
        late = self.pick_newcomer()
        self.make_move("join", late, ("as", "nobody"), ("version", 3))
        if dropped:
            self.make_move("drop", late)
        self.keep_heartbeating(7)
        self.make_move("fetch", 0)
        self.rebalance(())

    def may_restart(self) -> bool:
        """The target may be restarted once more; on real time only once in all, as that takes seconds."""
        return self.restarts and self.count_restarts() < (MAX_RESTARTS if self.virtual_time else 1)

    @precondition(may_restart)
    @rule(
        who=ACTOR,
        before=st.sampled_from(("leave", "commit", "join", "sync")),
        which=st.sampled_from(("session", "step", "rebalance")),
        at_once=st.booleans(),
    )
    def restart_in_between(self, who: int, before: str, which: str, at_once: bool) -> None:
        """The target is killed right after a request; members send requests as before and after a timer."""
        one = self.pick_member(who)
        self.make_move(before, one)
        self.make_move("restart", 0, *((("at-once", 1),) if at_once and self.virtual_time else ()))
        for each in tuple(self.members())[:2]:
            self.make_move("heartbeat", each)
        self.make_move("fetch", 0, ("stable", 1))
        self.make_move("commit", self.pick_member(who), ("offset", 8))
        self.make_move("wait", one, ("for", which), ("side", 1))
        self.make_move("wait")
        self.heartbeat_all()
        self.make_move("fetch")

    @precondition(may_restart)
    @rule(again=st.booleans())
    def departure_before_a_restart(self, again: bool) -> None:
        """A member with a short session leaves, the target restarts, and that session would end."""
        lost = self.pick_newcomer()
        self.make_move("join", lost, ("session", SHORT))
        self.rebalance((lost,))
        self.make_move("leave", lost)
        self.make_move("restart")
        if again:
            self.heartbeat_all()
        self.make_move("wait", 0, ("ms", 2_000))
        self.heartbeat_all()

    @precondition(lambda self: self.virtual_time and self.restarts and self.count_restarts() + 1 < MAX_RESTARTS)
    @rule(who=ACTOR)
    def two_restarts(self, who: int) -> None:
        """An offset is committed between two restarts and fetched after them."""
        self.rebalance(())
        self.make_move("restart")
        self.make_move("commit", self.pick_member(who), ("offset", 6))
        self.make_move("restart")
        self.make_move("fetch")


class ConnectionCutRules(MultiStepRules):
    """The rules of several steps, and one that cuts connections while a request is sent or right afterwards."""

    @rule(
        who=ACTOR,
        kind=st.sampled_from(("join", "sync", "heartbeat", "commit", "leave")),
        sent=st.sampled_from((5, 60, 99, 100, 100)),
        again=st.booleans(),
    )
    def cut_off(self, who: int, kind: str, sent: int, again: bool) -> None:
        """A connection is cut after a share of a request; the member may send it again. Part of a request must have no
        effect."""
        one = self.pick_member(who)
        self.make_move(kind, one, ("sent", sent))
        if again:
            self.make_move(kind, one)
        self.heartbeat_all()
        self.make_move("fetch")
