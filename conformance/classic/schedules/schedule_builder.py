"""A schedule while it is drawn: its moves so far, the simulation they are made on, and the moves members make."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from fencepost.conformance.classic.schedules.cast import CLIENTS, LONG, NEWEST, SHORT, MemberRole
from fencepost.conformance.classic.schedules.draw import Draw
from fencepost.conformance.classic.schedules.simulation import Simulation
from fencepost.conformance.run.schedule import Move, ScheduleScope, Value

MEMBERS = 7
MAX_JOIN_ATTEMPTS = 3
"""How often a member sends JoinGroup until it has joined: one may lose it an old id, the next get it a new one."""
MAX_RESTARTS = 3
HEARTBEAT_INTERVAL_MS = 25_000
"""How often members with long sessions heartbeat while much time passes."""
PLANS = ("", "", "", "", "part", "last")
GROUP_SIZES = (0, 0, 1, 2, 3, 3, 4)
"""How many members a group has as a rule; one of none has members only if an interaction makes them join."""
NO_OPTIONS: Mapping[str, Value] = {}


def draw_roles(draw: Draw, groups: int) -> tuple[MemberRole, ...]:
    """The role of each actor: in the first group as many as in all others together."""
    is_dynamic, is_newest = draw.choose((False, True)), draw.choose((False, True, True))
    return tuple(draw_role(draw, max(0, number - 3) % groups, is_dynamic, is_newest) for number in range(MEMBERS))


def draw_role(draw: Draw, group: int, is_dynamic: bool, is_newest: bool) -> MemberRole:
    """A role in a group; all members may be dynamic, and all may have the newest client."""
    return MemberRole(
        session=draw.choose((LONG, LONG, LONG, SHORT)),
        rebalance=draw.choose((SHORT, SHORT, SHORT, LONG)),
        offer=draw.choose(("a", "a", "ab", "ab", "ba")),
        instance=0 if is_dynamic else draw.choose((0, 0, 0, 1, 2, 2, 3)),
        group=group,
        client=NEWEST if is_newest else draw.choose((NEWEST, *CLIENTS)),
        subscription=draw.choose((0, 0, 0, 3)),
    )


class ScheduleBuilder:
    """Makes moves on a simulation and keeps them. Its methods are about one of the groups, `group`."""

    def __init__(self, draw: Draw, scope: ScheduleScope, simulation: Simulation) -> None:
        self.draw = draw
        self.scope = scope
        self.simulation = simulation
        self.roles = simulation.roles
        self.moves: list[Move] = []
        self.group = 0
        self.sizes = dict.fromkeys(self.groups(), 0)
        """How many members each group has as a rule."""

    # --- making moves -------------------------------------------------------------------------------------------

    def make_move(self, kind: str, who: int, options: Mapping[str, Value] = NO_OPTIONS) -> None:
        """Add a move to the schedule and to the simulation."""
        move = Move(kind, who, tuple(options.items()))
        self.moves.append(move)
        self.simulation.make_move(move)

    def act(self, kind: str, options: Mapping[str, Value] = NO_OPTIONS) -> None:
        """Make a move that any actor of the group can make."""
        self.make_move(kind, self.first_actor(), options)

    def join_until_member(self, who: int) -> None:
        """Join, with a second request if the first only got an id."""
        for _ in range(MAX_JOIN_ATTEMPTS):
            if self.simulation.is_joining(who):
                return
            self.make_move("join", who)
            if self.simulation.is_member(who):
                return

    def rebalance(self, who: Iterable[int], leader_last: bool = True) -> None:
        """Have the actors and all members join, wait for the responses, and sync by one plan."""
        wanted = tuple(dict.fromkeys((*who, *self.simulation.members(self.group))))
        for each in wanted:
            self.join_until_member(each)
        self.wait_for_joins(wanted)
        self.sync_all(wanted, leader_last, self.draw.choose(PLANS))

    def form_group(self) -> None:
        """Draw the size of the group; as many of its first actors form it."""
        self.sizes[self.group] = size = self.draw.choose(GROUP_SIZES)
        if size:
            self.rebalance(self.actors()[:size])

    def restore_group(self) -> None:
        """Every third time, have the group become Stable with as many members as it is to have."""
        size = self.sizes[self.group]
        if size and self.draw.number(0, 2) == 0:
            stable = self.simulation.members(self.group) if self.simulation.is_stable(self.group) else []
            if len(stable) < min(size, len(self.actors())):
                self.rebalance(self.actors()[:size])

    def wait_for_joins(self, who: Iterable[int]) -> None:
        """Wait until the join phase is over, if one of these actors takes part."""
        if any(self.simulation.is_joining(each) for each in who):
            self.act("wait", {"for": "answers"})

    def sync_all(self, who: Iterable[int], leader_last: bool = True, plan: str = "") -> None:
        """Have the actors that are in the generation sync, the leader with the plan of this name."""
        for each in sorted(who, key=lambda one: self.simulation.is_leader(one) == leader_last):
            if self.simulation.is_member(each) and not self.simulation.is_joining(each):
                with_plan = plan and self.simulation.is_leader(each)
                self.make_move("sync", each, {"plan": plan} if with_plan else NO_OPTIONS)

    def heartbeat_all(self) -> None:
        """All members that do not wait for a response to JoinGroup heartbeat."""
        for each in self.members():
            if not self.simulation.is_joining(each):
                self.make_move("heartbeat", each)

    def fetch_all(self) -> None:
        """Fetch all offsets, with and without those of open transactions."""
        self.act("fetch")
        self.act("fetch", {"stable": 1, "partition": self.draw.number(0, 2)})

    def pass_time(self, which: str, side: int, share: int = 100) -> None:
        """Wait for a share of a deadline, in percent."""
        self.act("wait", {"for": which, "side": side, **({"share": share} if share != 100 else {})})

    def keep_alive_for(self, milliseconds: int) -> None:
        """Time passes while the members of all groups heartbeat."""
        for left in range(milliseconds, 0, -HEARTBEAT_INTERVAL_MS):
            self.act("wait", {"ms": min(left, HEARTBEAT_INTERVAL_MS)})
            self.in_each_group(self.heartbeat_all)

    def probe_all(self) -> None:
        """Send the requests that show the state of every group and of every actor."""
        for each in range(len(self.roles)):
            if self.simulation.has_id(each) and not self.simulation.is_joining(each):
                self.make_move("heartbeat", each)
        self.in_each_group(lambda: self.act("describe"))
        self.in_each_group(self.fetch_all)

    def finish(self) -> None:
        """End the schedule with requests that show the state of the groups, before and after transactions end."""
        self.probe_all()
        if self.simulation.open_transactions():
            for producer in self.simulation.open_transactions():
                self.act("end", {"producer": producer, **({"abort": 1} if self.draw.number(0, 2) == 0 else {})})
            self.in_each_group(self.fetch_all)

    # --- who and where ------------------------------------------------------------------------------------------

    def groups(self) -> list[int]:
        """The groups of the schedule."""
        return sorted({role.group for role in self.roles})

    def focus_group(self) -> None:
        """Choose the group that the next moves are about: every second time the first one."""
        groups = self.groups()
        self.group = self.draw.choose((*[0] * (len(groups) - 1), *groups)) if len(groups) > 1 else 0

    def in_each_group(self, make_moves: Callable[[], None]) -> None:
        """Make these moves in each group in turn."""
        focus = self.group
        for group in self.groups():
            self.group = group
            make_moves()
        self.group = focus

    def actors(self) -> list[int]:
        """The actors of the group."""
        return [number for number, role in enumerate(self.roles) if role.group == self.group]

    def first_actor(self) -> int:
        """The first actor of the group."""
        return self.actors()[0]

    def members(self) -> Sequence[int]:
        """The members of the group, or its first actor if it has none."""
        return self.simulation.members(self.group) or [self.first_actor()]

    def settled_members(self) -> list[int]:
        """The members of the group that do not wait for a response to JoinGroup."""
        return [each for each in self.simulation.members(self.group) if not self.simulation.is_joining(each)]

    def pick_actor(self) -> int:
        """Any actor of the group."""
        return self.draw.choose(self.actors())

    def pick_actors(self, most: int | None = None) -> list[int]:
        """Some actors of the group."""
        return self.draw.choose_some(self.actors(), most)

    def pick_member(self) -> int:
        """Any member of the group."""
        return self.draw.choose(self.members())

    def pick_newcomer(self) -> int:
        """An actor of the group that is not a member; the first of all if there is none."""
        return next((each for each in self.actors() if each not in self.members()), self.first_actor())

    def flag(self) -> bool:
        """True or False."""
        return self.draw.choose((False, True))

    # --- what is possible ---------------------------------------------------------------------------------------

    @property
    def is_virtual(self) -> bool:
        """Whether time is virtual, so that the schedule can wait for any timer."""
        return self.scope.virtual_time

    def can_wait_for_session(self, who: int) -> bool:
        """Whether the session of this actor is short enough to be waited out."""
        return self.is_virtual or self.roles[who].session == SHORT

    def count_moves(self, kind: str) -> int:
        """The number of moves of a kind so far."""
        return sum(move.kind == kind for move in self.moves)

    def can_restart(self, times: int = 1) -> bool:
        """Whether the target may be restarted so often; on real time only once in all, as that takes seconds."""
        most = MAX_RESTARTS if self.is_virtual else 1
        return self.scope.restarts and self.count_moves("restart") + times <= most
