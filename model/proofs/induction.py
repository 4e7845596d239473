"""Proofs by induction about handlers and kernels, and their results for readers.

`check_goals` is the step that all proofs share. `prove_handler` is the whole induction for a protocol whose state is
one value: a statement about a state is an invariant, one about two states says how an event may change it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import z3

from fencepost.model.logic import Truth
from fencepost.model.proofs.arbitrary_values import Contract, Sort, SymbolFactory
from fencepost.model.proofs.plain_python import ModuleTwins
from fencepost.model.proofs.solver import LimitedSolver
from fencepost.model.proofs.symbolic_execution import execute_paths
from fencepost.model.proofs.symbolic_values import formula
from fencepost.model.proofs.term_evaluation import model_reader, to_plain
from fencepost.model.proofs.terms import Term, clear_terms, conjunction_of, disjunction_of, negation, some_fails
from fencepost.model.relations import Kernel, KernelEvent
from fencepost.model.statement import Statement

Result = TypeVar("Result")
SmallWorld = Callable[[Sequence[Term]], z3.ModelRef | None]
"""Finds an instance of some terms in a world of a few elements, or None."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A statement about some arguments after an event, and its formula."""

    statement: Statement
    arguments: tuple[Any, ...]
    term: Term


@dataclass(frozen=True, slots=True)
class BrokenGoal:
    """A goal that fails on a path, the result of that path, and a model of the solver's."""

    goal: Goal
    result: Any
    model: z3.ModelRef


@dataclass(frozen=True, slots=True)
class InductionResult:
    """The outcome for one event: broken goals, and statements that the solver could not decide within its limit."""

    possible: bool
    """The assumptions do not contradict each other."""
    paths: int
    goals: int
    broken: tuple[BrokenGoal, ...]
    undecided: tuple[str, ...]
    seconds: float
    longest: float
    """The seconds of the longest query."""


def check_goals(
    solver: LimitedSolver,
    run: Callable[[], Result],
    goals_after: Callable[[Result], Sequence[Goal]],
    stronger: LimitedSolver | None = None,
    alone: Collection[Statement] = (),
    small: SmallWorld | None = None,
) -> InductionResult:
    """Run an event on every path that the solver's assumptions admit, and check the goals of each result.

    Where a `stronger` solver assumes more, the first one is asked of the `alone` statements only. Paths that get the
    same sequence of goals, as one object, are asked of together. Where the solver does not know, it is asked for a
    counterexample in a `small` world.
    """
    began = perf_counter()
    asked = solver if stronger is None else stronger
    can_happen = asked.check()
    undecided = ["whether it can happen"] if can_happen == z3.unknown else []
    names = {one.id for one in alone}
    paths: dict[int, tuple[Sequence[Goal], list[Path]]] = {}
    for result, conditions in execute_paths(run, solver):
        goals = goals_after(result)
        paths.setdefault(id(goals), (goals, []))[1].append(Path(result, tuple(conditions)))
    broken: list[BrokenGoal] = []
    every = [GoalsOfPaths(tuple(goals), tuple(together)) for goals, together in paths.values()]
    mine = [one.keep_goals(lambda goal: stronger is None or goal.statement.id in names) for one in every]
    rest = [one.keep_goals(lambda goal: stronger is not None and goal.statement.id not in names) for one in every]
    for path, goal, model in (*failing_paths(solver, mine, small), *failing_paths(asked, rest, small)):
        if model is None:
            undecided.append(goal.statement.id)
        else:
            broken.append(BrokenGoal(goal, path.result, model))
    count = sum(len(one.goals) * len(one.paths) for one in every)
    seconds, possible = perf_counter() - began, bool(can_happen != z3.unsat)
    longest = max(solver.longest, asked.longest)
    return InductionResult(
        possible, sum(len(one.paths) for one in every), count, tuple(broken), tuple(undecided), seconds, longest
    )


@dataclass(frozen=True, slots=True)
class Path:
    """The result of a path, and the conditions under which it is taken."""

    result: Any
    conditions: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class GoalsOfPaths:
    """What has to be shown on each of these paths."""

    goals: tuple[Goal, ...]
    paths: tuple[Path, ...]

    def keep_goals(self, kept: Callable[[Goal], bool]) -> "GoalsOfPaths":
        """These paths with the goals that are kept."""
        return GoalsOfPaths(tuple(filter(kept, self.goals)), self.paths)

    def failure(self) -> Term:
        """Some of the goals fails on some of the paths."""
        taken = disjunction_of([conjunction_of(path.conditions) for path in self.paths])
        return conjunction_of([taken, some_fails([goal.term for goal in self.goals])])


PER_QUERY = 4
"""How many goals of paths one query is about as long as it finds nothing: they have most of their terms in common."""


def failing_paths(
    solver: LimitedSolver, every: Sequence[GoalsOfPaths], small: SmallWorld | None = None
) -> Iterator[tuple[Path, Goal, z3.ModelRef | None]]:
    """The goals that fail, each with its path and a model, and the undecided ones with None."""
    asked = [one for one in every if one.goals]
    for start in range(0, len(asked), PER_QUERY):
        together = asked[start : start + PER_QUERY]
        if check_term(solver, disjunction_of([one.failure() for one in together])) == z3.unsat:
            continue
        for one in together:
            for path in one.paths:
                with solver.scope():
                    solver.add(*path.conditions)
                    for goal, model in failing_goals(solver, one.goals, small):
                        yield path, goal, model


def failing_goals(
    solver: LimitedSolver, goals: Sequence[Goal], small: SmallWorld | None = None
) -> Iterator[tuple[Goal, z3.ModelRef | None]]:
    """The goals that fail on this path with a model, and the undecided ones with None; one query if there are none."""
    if not goals or check_term(solver, some_fails([goal.term for goal in goals])) == z3.unsat:
        return
    for goal in goals:
        with solver.scope():
            solver.add(negation(goal.term))
            response = solver.check()
            if response == z3.unknown and small is not None:
                yield goal, small(solver.assertions())
            elif response != z3.unsat:
                yield goal, solver.model() if response == z3.sat else None


def check_term(solver: LimitedSolver, term: Term) -> z3.CheckSatResult:
    """Whether the term is possible under the solver's assumptions."""
    with solver.scope():
        solver.add(term)
        return solver.check()


# -- protocols whose state is one value ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HandlerEvent:
    """A handler of a state and of arguments of these sorts. `assumed` says which arguments reach it in a state."""

    name: str
    handler: Callable[..., Any]
    sorts: tuple[Sort, ...]
    assumed: Callable[..., Truth] = lambda *_: True


@dataclass(frozen=True, slots=True)
class HandlerCounterexample:
    """A counterexample to induction in plain values: a state in which all invariants hold, arguments, and the result
    that breaks the statement."""

    statement: str
    state: Any
    arguments: tuple[Any, ...]
    result: Any


@dataclass(frozen=True, slots=True)
class HandlerProof:
    """The outcome for one handler."""

    event: HandlerEvent
    result: InductionResult
    counterexamples: tuple[HandlerCounterexample, ...]

    @property
    def is_proved(self) -> bool:
        """The event can happen and keeps every statement."""
        return self.result.possible and not self.result.broken and not self.result.undecided


def prove_handler(
    event: HandlerEvent,
    state_type: type,
    after: Callable[[Any], Any],
    statements: Sequence[Statement],
    symbols: Callable[[], SymbolFactory] = SymbolFactory,
    seed: int = 0,
) -> HandlerProof:
    """Prove that the handler, run on any state in which the invariants hold, keeps all statements.

    `after` reads the next state from a handler's result.
    """
    clear_terms()
    factory = symbols()
    state = factory.arbitrary(state_type, "state")
    modules = (event.handler.__module__, *(one.holds.__module__ for one in statements))
    symbolic = ModuleTwins(*(module.rpartition(".")[0] for module in modules)).twin
    sorts = [replace(sort, holds=symbolic(sort.holds)) if isinstance(sort, Contract) else sort for sort in event.sorts]
    arguments = tuple(factory.arbitrary(sort, f"argument.{place}") for place, sort in enumerate(sorts))
    solver = LimitedSolver(seed, simple=True)
    solver.add(*factory.domain, formula(symbolic(event.assumed)(state, *arguments)))
    solver.add(*(formula(symbolic(one.holds)(state)) for one in statements if len(one.subjects) == 1))

    def goals_after(result: Any) -> Sequence[Goal]:
        about = {one.id: (state, after(result))[-len(one.subjects) :] for one in statements}
        return [Goal(one, about[one.id], formula(symbolic(one.holds)(*about[one.id]))) for one in statements]

    run = partial(symbolic(event.handler), state, *arguments)
    result = check_goals(solver, run, goals_after, small=factory.small_instance)
    return HandlerProof(event, result, tuple(decode_goal(one, state, arguments) for one in result.broken))


def decode_goal(broken: BrokenGoal, state: Any, arguments: tuple[Any, ...]) -> HandlerCounterexample:
    """The broken goal in plain values."""
    read, there = model_reader(broken.model), broken.model.get_universe
    values = (state, arguments, broken.result)
    before, given, result = (to_plain(one, read, elements=lambda sort: there(sort) or ()) for one in values)
    return HandlerCounterexample(broken.goal.statement.id, before, given, result)


def initially_false(statements: Iterable[Statement], initial: Any) -> tuple[str, ...]:
    """The invariants that do not hold in the initial state."""
    return tuple(one.id for one in statements if len(one.subjects) == 1 and one.holds(initial) is not True)


# --- A claim with its hypotheses, and the verdict of the solver.


@dataclass(frozen=True, slots=True)
class Lemma:
    """From the hypotheses follows the goal. A lemma with `holds` false is a false theorem that has to be refuted."""

    theorem: str
    name: str
    hypotheses: tuple[Any, ...]
    goal: Any
    holds: bool = True


@dataclass(frozen=True, slots=True)
class KernelTheorems:
    """The theorems about the kernel of a protocol: those that hold, the wordings that are false, and the lemmas of
    both."""

    name: str
    true: dict[str, str]
    false: dict[str, str]
    lemmas: Callable[[], Iterator[Lemma]]
    covers: str
    excludes: str


def kernel_lemmas(
    name: str,
    first: Kernel,
    before: Kernel,
    events: Iterable[KernelEvent[Kernel]],
    invariants: Callable[[Kernel], dict[str, Truth]],
    theorem_of: Callable[[str], str],
) -> Iterator[Lemma]:
    """The invariants hold of the first kernel and after every event of any kernel before, and what repairs a design is
    needed. `theorem_of` is the theorem that an invariant counts for."""
    for claimed, claim in invariants(first).items():
        yield Lemma(theorem_of(claimed), f"{claimed} at the beginning", (z3.BoolVal(True),), formula(claim))
    known = tuple(map(formula, invariants(before).values()))
    seen: set[str] = set()
    for event in events:
        after = {claimed: formula(claim) for claimed, claim in invariants(event.after).items()}
        if event.name not in seen and event.guard is not False:
            hypotheses = (*known, formula(event.guard))
            for claimed, claim in after.items():
                yield Lemma(theorem_of(claimed), f"{claimed} after {event.name}", hypotheses, claim)
        if event.repair:
            needed = f"{name}.{event.repair} is needed"
            yield Lemma(needed, event.name, (*known, formula(event.drafted)), z3.And(*after.values()), holds=False)
        seen.add(event.name)


@dataclass(frozen=True, slots=True)
class LemmaResult:
    """What became of a lemma: "proved", "refuted" (with a model), "vacuous" or "unknown"."""

    lemma: Lemma
    verdict: str
    seconds: float
    longest: float
    """The seconds of the longest query so far that shares the hypotheses."""
    model: Any = None

    @property
    def as_expected(self) -> bool:
        """The verdict is "proved" for a lemma that should hold, and "refuted" for one that should not."""
        return self.verdict == ("proved" if self.lemma.holds else "refuted")


def findings(lemmas: Iterable[Lemma], seed: int = 0) -> Iterator[LemmaResult]:
    """Ask the solver whether the hypotheses can hold at all, and then whether the goal can fail.

    Lemmas in a row that share their hypotheses, as one tuple, share a solver and the first question.
    """
    solver, possible, shared = LimitedSolver(seed), z3.unknown, None
    for lemma in lemmas:
        started = perf_counter()
        if lemma.hypotheses is not shared:
            shared, solver = lemma.hypotheses, LimitedSolver(seed)
            solver.add(*lemma.hypotheses)
            possible = solver.check()
        verdict, model = "vacuous" if possible == z3.unsat else "unknown", None
        if possible == z3.sat:
            with solver.scope():
                solver.add(z3.Not(lemma.goal))
                response = solver.check()
                verdict = "proved" if response == z3.unsat else "refuted" if response == z3.sat else "unknown"
                model = solver.model() if response == z3.sat else None
        yield LemmaResult(lemma, verdict, perf_counter() - started, solver.longest, model)


# --- The result of a theorem, for readers.

Progress = Callable[[str, int, int], None]
"""Told what is being proved, its number and how many there are."""


@dataclass(frozen=True, slots=True)
class InductionCounterexample:
    """A counterexample to induction in plain values: before the event all statements hold, after it one does not."""

    event: str
    statement: str
    subject: Any
    """The group, its record or the member before the event."""
    arguments: tuple[Any, ...]
    result: Any
    """What the proof says comes of it."""
    about: tuple[Any, ...]
    """What the statement is broken for."""


@dataclass(frozen=True, slots=True)
class TheoremResult:
    """What became of a theorem: "proved", "refuted", "undecided" (the solver gave up) or "vacuous"; or "unproved",
    where it was not refuted itself but a statement that it rests on."""

    id: str
    sentence: str
    verdict: str
    covers: str
    excludes: str
    seconds: float
    longest: float = 0.0
    """The seconds of the longest query."""
    counterexamples: tuple[InductionCounterexample, ...] = ()
    rests_on: tuple[str, ...] = ()
    """The refuted statements that leave it unproved."""


def worst_verdict(found: list[LemmaResult]) -> str:
    """Proved only if every lemma is what it should be."""
    wrong = {one.verdict for one in found if not one.as_expected}
    if not wrong:
        return "proved"
    return "undecided" if wrong == {"unknown"} else "vacuous" if "vacuous" in wrong else "refuted"


# --- The results of the theorems about the kernel of a protocol.


def kernel_results(theorems: KernelTheorems, seed: int, progress: Progress) -> Iterator[TheoremResult]:
    """One result for each theorem, then one for each false wording; the lemmas below them count for all theorems."""
    lemmas = list(theorems.lemmas())
    found: list[LemmaResult] = []
    for number, finding in enumerate(findings(lemmas, seed), 1):
        if number % 20 == 1:
            progress(theorems.name, number, len(lemmas))
        found.append(finding)
    below = [one for one in found if one.lemma.theorem not in {*theorems.true, *theorems.false}]
    for theorem, sentence in {**theorems.true, **theorems.false}.items():
        own = [one for one in found if one.lemma.theorem == theorem]
        counted = own if theorem in theorems.false else [*own, *below]
        verdict = worst_verdict(counted) if own else "vacuous"
        if theorem in theorems.false and verdict == "proved":
            verdict = "false, as it should be"
        elif theorem in theorems.false and verdict == "refuted":
            verdict = "not broken"
        longest = max((one.longest for one in counted), default=0.0)
        seconds = sum(one.seconds for one in own)
        yield TheoremResult(theorem, sentence, verdict, theorems.covers, theorems.excludes, seconds, longest)
