"""Baselines for the kit's schedules: generators of schedules that use no knowledge of the protocol."""

import random
from collections.abc import Iterable

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from fencepost.conformance.classic.schedules.cast import LONG, SHORT, MemberRole
from fencepost.conformance.classic.schedules.draw import MAX_OPTIONS, PERTURBATIONS
from fencepost.conformance.classic.schedules.request_interactions import APIS
from fencepost.conformance.run.play import ScheduleSource
from fencepost.conformance.run.schedule import BATCH_SIZE, Move, Schedule, Value

MAX_STEPS = 40
"""The most moves of a schedule: about as many as the kit's own schedules have."""
WAIT_KINDS = ("session", "rebalance", "delay", "new-member", "retention", "step")
REQUEST_KINDS = ("join", "sync", "heartbeat", "leave", "commit", "fetch", "describe")
OTHER_KINDS = ("crash", "drop", "again", "transact", "end", "restart", "wait")
MEMBERS = 5
ACTOR = st.integers(0, MEMBERS - 1)
ROLE = st.builds(
    MemberRole,
    session=st.sampled_from((LONG, LONG, LONG, SHORT)),
    rebalance=st.sampled_from((SHORT, SHORT, SHORT, LONG)),
    offer=st.sampled_from(("a", "a", "ab", "ab", "ba")),
    instance=st.sampled_from((0, 0, 0, 1, 1, 2)),
)


def perturbed_options(kind: str) -> st.SearchStrategy[tuple[tuple[str, Value], ...]]:
    """Some options of a kind of request."""
    option = st.sampled_from(PERTURBATIONS[kind]).flatmap(
        lambda found: st.tuples(st.just(found[0]), st.sampled_from(found[1]))
    )
    return st.lists(option, min_size=1, max_size=MAX_OPTIONS, unique_by=lambda pair: pair[0]).map(tuple)


PERTURBED = st.sampled_from(sorted(PERTURBATIONS)).flatmap(
    lambda kind: st.tuples(st.just(kind), perturbed_options(kind))
)


def random_walks(run: int) -> ScheduleSource:
    """Schedules of moves that are each drawn from all possible ones, with the same probability."""

    def chunk(number: int) -> Iterable[Schedule]:
        chance = random.Random(f"{run} {number}")
        for place in range(BATCH_SIZE):
            cast = tuple(MemberRole(chance.choice((SHORT, LONG)), chance.choice((SHORT, LONG))) for _ in range(MEMBERS))
            moves = tuple(random_move(chance) for _ in range(chance.randint(1, MAX_STEPS)))
            yield Schedule(f"walk-{run}-{number}-{place}", cast, moves)

    return chunk


def random_move(chance: random.Random) -> Move:
    """A random move of a random actor, every second one with an option."""
    kind, who = (
        chance.choice((*REQUEST_KINDS, *OTHER_KINDS, "list", "delete", "delete-offsets")),
        chance.randrange(MEMBERS),
    )
    if kind == "wait":
        return Move(kind, who, (("for", chance.choice(WAIT_KINDS)), ("side", chance.choice((-1, 1)))))
    if kind in PERTURBATIONS and chance.random() < 0.5:
        name, values = chance.choice(PERTURBATIONS[kind])
        return Move(kind, who, ((name, chance.choice(values)),))
    return Move(kind, who)


class PlainMachine(RuleBasedStateMachine):
    """A state machine with one request for each rule, as state machines are usually written."""

    found: list[Schedule]

    def __init__(self) -> None:
        super().__init__()
        self.moves: list[Move] = []
        self.cast: tuple[MemberRole, ...] = ()

    @initialize(cast=st.lists(ROLE, min_size=MEMBERS, max_size=MEMBERS))
    def cast_roles(self, cast: list[MemberRole]) -> None:
        """Draw the roles."""
        self.cast = tuple(cast)

    def teardown(self) -> None:
        """Collect the schedule."""
        if self.moves:
            self.collect(Schedule("", self.cast, tuple(self.moves)))

    def collect(self, schedule: Schedule) -> None:
        """Take a schedule that is complete."""
        raise NotImplementedError

    @rule(who=ACTOR, kind=st.sampled_from(REQUEST_KINDS))
    def send_request(self, who: int, kind: str) -> None:
        """One actor sends one request as a well-behaved member does."""
        self.moves.append(Move(kind, who))

    @rule(who=ACTOR, found=PERTURBED)
    def send_perturbed_request(self, who: int, found: tuple[str, tuple[tuple[str, Value], ...]]) -> None:
        """A request with an option."""
        self.moves.append(Move(found[0], who, found[1]))

    @rule(who=ACTOR, kind=st.sampled_from(("crash", "transact", "end", "restart")))
    def fail_or_transact(self, who: int, kind: str) -> None:
        """A crash, a transaction or a restart."""
        self.moves.append(Move(kind, who))

    @rule(who=ACTOR, kind=st.sampled_from(("again", "drop")), api=st.sampled_from(APIS))
    def repeat_or_cut(self, who: int, kind: str, api: str) -> None:
        """A request is sent again, or its connection is cut."""
        self.moves.append(Move(kind, who, (("api", api),)))

    @rule(who=ACTOR, which=st.sampled_from(WAIT_KINDS), side=st.sampled_from((-1, 1)))
    def wait(self, who: int, which: str, side: int) -> None:
        """Time passes."""
        self.moves.append(Move("wait", who, (("for", which), ("side", side))))


def plain_hypothesis(run: int) -> ScheduleSource:
    """Schedules of a Hypothesis state machine with one request for each rule."""

    def chunk(number: int) -> Iterable[Schedule]:
        found: list[Schedule] = []

        class Drawing(PlainMachine):
            def collect(self, schedule: Schedule) -> None:
                found.append(schedule)

        options = settings(
            max_examples=BATCH_SIZE,
            stateful_step_count=MAX_STEPS,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )
        run_state_machine_as_test(seed(f"{run} {number}")(Drawing), settings=options)
        for place, each in enumerate(found):
            yield Schedule(f"plain-{run}-{number}-{place}", each.cast, each.moves)

    return chunk
