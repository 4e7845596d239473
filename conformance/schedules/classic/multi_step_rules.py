"""Longer stories for the state machine: what takes several steps in the right order, most of them with time between.

Each is a way in which timers, restarts and old clients went wrong in some coordinator; a request at a time would hardly
ever come to it.
"""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from fencepost.conformance.schedules.classic.state_machine import ACTOR, MEMBERS, SOME, GroupMachine, twisted
from fencepost.conformance.schedules.schedule import SHORT

SIGNS_OF_LIFE = st.sampled_from(("heartbeat", "commit"))
BEAT_MS = 50_000
"""How often members show that they are there that have long sessions."""
RESTARTS = 3


class Stories(GroupMachine):
    """The state machine with longer stories."""

    def restarted(self) -> int:
        """How often the target was restarted so far."""
        return sum(move.kind == "restart" for move in self.made)

    def newcomer(self) -> int:
        """Somebody who is not in the group, if there is one."""
        return next((each for each in range(MEMBERS) if each not in self.members()), 0)

    def settled(self) -> None:
        """All who do not wait for anything are told how things are."""
        for each in self.members():
            if not self.forecast.is_waiting(each):
                self.do("heartbeat", each)

    def has_time(self) -> bool:
        """Time is virtual, and this is not a long story yet."""
        return self.patient and all(move.get("ms") != BEAT_MS for move in self.made)

    def stay(self, times: int) -> None:
        """Time passes in which members show that they are there."""
        for _ in range(times):
            self.do("wait", 0, ("for", "while"), ("ms", BEAT_MS))
            self.settled()

    @rule(who=ACTOR, how=SIGNS_OF_LIFE, times=st.integers(2, 3))
    def last_minute(self, who: int, how: str, times: int) -> None:
        """A member shows that it is there whenever its session is all but over."""
        one = self.pick(who)
        if self.patient or self.roles[one].session == SHORT:
            for _ in range(times):
                self.do("wait", one, ("for", "session"), ("side", -1))
                self.do(how, one)
            self.do("heartbeat", one)

    @rule(who=SOME, which=st.sampled_from(("rebalance", "session", "delay")))
    def afterwards(self, who: list[int], which: str) -> None:
        """Everybody joins and syncs, and what may still be armed comes due."""
        self.gather(who)
        self.do("wait", who[0], ("for", which), ("side", 1))
        self.settled()

    @rule(who=ACTOR)
    def after_a_loss(self, who: int) -> None:
        """A member that did not rejoin is dropped, and then its session would be over."""
        self.rejoin_without(who, "silent")
        self.do("wait", 0, ("for", "while"), ("ms", 2_000))
        self.settled()

    @rule(session=st.booleans())
    def unused_id(self, session: bool) -> None:
        """Somebody asks for an id and vanishes; the others rejoin, and wait for it no longer than its session."""
        lost = self.newcomer()
        self.do("join", lost, ("as", "nobody"), ("session", SHORT))
        others = [each for each in self.members() if each != lost]
        self.do("join", others[0] if others else 0, ("metadata", 1))
        for each in others:
            self.enter(each)
        if session:
            self.do("wait", lost, ("for", "session"), ("side", 1))
        self.settled()

    @rule(who=SOME, session=st.booleans())
    def parked_for_long(self, who: list[int], session: bool) -> None:
        """Members wait for one that takes longer than their sessions last."""
        absent = self.pick(0)
        for each in who:
            if each != absent:
                self.do("join", each, ("session", SHORT), ("metadata", 2))
                self.enter(each)
        self.do("wait", who[0], ("for", "session" if session else "rebalance"), ("side", 1))
        self.enter(absent)
        self.settled()

    @rule(who=SOME, version=st.integers(0, 3))
    def old_clients(self, who: list[int], version: int) -> None:
        """Members with an old client make a generation; then another one comes."""
        for each in who:
            self.do("join", each, ("version", version))
        self.let_join(who)
        self.share(who)
        self.do("join", self.newcomer(), ("version", version))
        self.settled()

    @rule(who=ACTOR, odd=twisted("commit"), partition=st.integers(0, 2))
    def odd_commit(self, who: int, odd: tuple[tuple[str, int | str], ...], partition: int) -> None:
        """A commit that is not quite right, and what a fetch makes of it."""
        self.do("commit", self.pick(who), *(pair for pair in odd if pair[0] != "partition"), ("partition", partition))
        self.do("fetch", 0, ("partition", partition), ("stable", 1))

    @rule(who=ACTOR, further=st.booleans())
    def too_long(self, who: int, further: bool) -> None:
        """A commit whose metadata is too long is refused, and no fetch of stable offsets need wait for it."""
        self.do("commit", self.pick(who), ("note", "long"), *((("further", 1),) if further else ()))
        self.do("fetch", 0, ("partition", 0), ("stable", 1))

    @rule(odd=twisted("join"))
    def first_of_all(self, odd: tuple[tuple[str, int | str], ...]) -> None:
        """An empty group gets a JoinGroup that is not quite right."""
        for each in tuple(self.members()):
            self.do("leave", each)
        self.do("join", 0, ("as", "nobody"), *(pair for pair in odd if pair[0] != "as"))
        self.let_join((0,))

    @precondition(has_time)
    @rule(version=st.integers(0, 9))
    def five_minutes(self, version: int) -> None:
        """A member joins and is there for longer than a first JoinGroup may take."""
        one = self.newcomer()
        self.do("join", one, ("version", version), ("session", "long"))
        self.gather((one,))
        self.stay(7)

    @precondition(has_time)
    @rule(dropped=st.booleans())
    def endless_round(self, dropped: bool) -> None:
        """A round lasts for more than five minutes: its leader has all that time, and only heartbeats."""
        leader = self.pick(0)
        self.do("join", leader, ("rebalance", "endless"), ("session", "long"), ("metadata", 3))
        self.gather(())
        self.do("commit", leader, ("offset", 4))
        late = self.newcomer()
        self.do("join", late, ("as", "nobody"), ("version", 3))
        if dropped:
            self.do("drop", late)
        self.stay(7)
        self.do("fetch", 0)
        self.gather(())

    def may_restart(self) -> bool:
        """The target may go down once more; on real time that takes a while."""
        return self.restarts and self.restarted() < (RESTARTS if self.patient else 1)

    @precondition(may_restart)
    @rule(
        who=ACTOR,
        before=st.sampled_from(("leave", "commit", "join", "sync")),
        which=st.sampled_from(("session", "step", "rebalance")),
        at_once=st.booleans(),
    )
    def restart_in_between(self, who: int, before: str, which: str, at_once: bool) -> None:
        """The target goes down right after a request; members go on, and see what has become of it later."""
        one = self.pick(who)
        self.do(before, one)
        self.do("restart", 0, *((("at-once", 1),) if at_once and self.patient else ()))
        for each in tuple(self.members())[:2]:
            self.do("heartbeat", each)
        self.do("fetch", 0, ("stable", 1))
        self.do("commit", self.pick(who), ("offset", 8))
        self.do("wait", one, ("for", which), ("side", 1))
        self.do("wait")
        self.settled()
        self.do("fetch")

    @precondition(may_restart)
    @rule(again=st.booleans())
    def departure_before_a_restart(self, again: bool) -> None:
        """Somebody with a short session leaves, the target goes down, and that session would be over."""
        lost = self.newcomer()
        self.do("join", lost, ("session", SHORT))
        self.gather((lost,))
        self.do("leave", lost)
        self.do("restart")
        if again:
            self.settled()
        self.do("wait", 0, ("ms", 2_000))
        self.settled()

    @precondition(lambda self: self.patient and self.restarts and self.restarted() + 1 < RESTARTS)
    @rule(who=ACTOR)
    def two_restarts(self, who: int) -> None:
        """What is accepted after one restart is there after the next."""
        self.gather(())
        self.do("restart")
        self.do("commit", self.pick(who), ("offset", 6))
        self.do("restart")
        self.do("fetch")


class Cuts(Stories):
    """The same with connections that are cut while a request is sent, or as soon as it was."""

    @rule(
        who=ACTOR,
        kind=st.sampled_from(("join", "sync", "heartbeat", "commit", "leave")),
        sent=st.sampled_from((5, 60, 99, 100, 100)),
        again=st.booleans(),
    )
    def cut_off(self, who: int, kind: str, sent: int, again: bool) -> None:
        """Of a part of a request nothing may come, of a whole one all that does; the member may try again."""
        one = self.pick(who)
        self.do(kind, one, ("sent", sent))
        if again:
            self.do(kind, one)
        self.settled()
        self.do("fetch")
