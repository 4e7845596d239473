"""Systematic mutants of the model of the reference client: guards and comparisons, each changed by one operator.

A mutant is found if a schedule or a scenario shows twice what it does not show of the shipped client, if the client
raises an error, or if it hangs; or, if nothing else is, a scenario that cannot go on with it, twice, and can with the
shipped client. One that does the same as the shipped client in all of them is not told apart.
"""

import pkgutil
import time
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.clients.classic import DRIVEN_CLIENTS, SCENARIOS
from fencepost.conformance.clients.classic.schedules.protocol import ClassicClientSchedules
from fencepost.conformance.clients.play import ClientPlay
from fencepost.conformance.clients.schedule_bench import ClientBench
from fencepost.conformance.clients.stage import ClientFacts
from fencepost.conformance.scenario.scenario import Scenario, ScenarioRun
from fencepost.conformance.zoo.client_hunts import CLIENT_STUCK, unusual_in
from fencepost.conformance.zoo.mutation.module_copies import load_changed, source_of
from fencepost.conformance.zoo.mutation.mutants import Mutant, all_mutants, apply_mutant
from fencepost.conformance.zoo.mutation.operators import OPERATORS
from fencepost.conformance.zoo.timeouts import CpuLimitExceeded, cpu_limit
from fencepost.model.classic import member
from fencepost.traces.events import Kind

GUARD_OPERATORS = frozenset({"always", "never", "comparison"})
EXCLUDED = frozenset({"client", "resync", "step"})
"""Modules without decisions, values and tables, and members of a proposal, which no client speaks."""
_DRIVER, _SETTINGS = "fencepost.adapters.client.reference.driver", "fencepost.model.classic.member.settings"
SECONDS_FOR_ONE = 10.0
"""Of a core, for a schedule or a scenario: one that takes longer hangs."""
PROTOCOL = ClassicClientSchedules(is_driven=True)
COMPARED_KINDS = (Kind.REQUEST, Kind.CALLBACK, Kind.POLL)
KINDS = ("eager", "cooperative", "static", "sticky by hand", "cooperative by hand")
"""The clients that a mutant is made of, one after the other; those by hand commit only what they are asked for."""
NO_POLICY = "eager without a reset policy"
"""Another one, which consumes nothing where nothing is committed: it plays the scenarios of first offsets alone."""


@dataclass(frozen=True, slots=True)
class MutantOutcome:
    """What was found about a mutant: by which requirement or error, after how many plays and seconds of a core.
    Where nothing was, `differs` says whether it did anything else than the shipped client."""

    name: str
    found: str
    plays: int
    seconds: float
    differs: bool = True


@cache
def client_mutants() -> dict[str, Mutant]:
    """The mutants by their names, in the order of the source."""
    names = sorted(each.name for each in pkgutil.iter_modules(member.__path__) if each.name not in EXCLUDED)
    sources = {f"{member.__name__}.{name}": source_of(f"{member.__name__}.{name}") for name in names}
    operators = [one for one in OPERATORS if one.name in GUARD_OPERATORS]
    return {mutant.name: mutant for mutant in all_mutants(sources, operators) if mutant.function}


def settings_of(module: Any, kind: str) -> Any:
    """The settings of a client of this kind, made by a copy of the module of settings."""
    by_name = {"cooperative": (module.COOPERATIVE_STICKY,), "sticky": (module.STICKY,)}
    strategies = by_name.get(kind.partition(" ")[0], (module.RANGE, module.ROUND_ROBIN))
    return module.ClientSettings(
        strategies=strategies,
        instance="i" if kind == "static" else None,
        session_timeout=6_000,
        heartbeat_interval=500,
        max_poll_interval=6_000,
        auto_commit="by hand" not in kind,
        auto_commit_interval=1_000,
        request_timeout=10_000,
        reset_policy=module.ResetPolicy.NONE if kind == NO_POLICY else module.ResetPolicy.EARLIEST,
    )


def make_play(driver: Any, settings: Any) -> ClientPlay:
    """A play with the client of a copied module."""
    subject = driver.ReferenceSubject(settings, is_driven=True)
    follow = DRIVEN_CLIENTS.follow
    return ClientPlay(subject, "mutant", follow, subject.start_cluster, 30.0, clock="virtual", is_driven=True)


def mutant_bench(mutant: Mutant | None, kind: str) -> ClientBench:
    """A bench for a mutant, or for the shipped client. Raises what the mutant raises when it is loaded."""
    changed = {} if mutant is None else {mutant.module: apply_mutant(source_of(mutant.module), mutant)}
    modules = load_changed(changed, [_DRIVER, _SETTINGS])
    settings = settings_of(modules[_SETTINGS], kind)
    names = tuple(strategy.name for strategy in settings.strategies)
    facts = ClientFacts(names, settings.session_timeout, settings.rebalance_timeout, kind == "static")
    return ClientBench(PROTOCOL, partial(make_play, modules[_DRIVER], settings), facts)


@cache
def plays_of(seed: int, count: int) -> tuple[tuple[str, Scenario], ...]:
    """All scenarios, and then so many schedules of a seed, each for every kind of client."""
    schedules = tuple(PROTOCOL.client_scenario_of(each.schedule) for each in PROTOCOL.generate(seed, 0, count))
    usual = ((kind, play) for plays in (SCENARIOS, schedules) for kind in KINDS for play in plays)
    first_offsets = ((NO_POLICY, play) for play in SCENARIOS if "MCOMMIT-19" in play.requirements)
    return (*usual, *first_offsets)


def hunt_mutant(name: str, seed: int, count: int) -> MutantOutcome:
    """Play all scenarios and so many schedules with a mutant until one shows twice what the shipped client does not."""
    mutant, begun, played, differs, stuck = client_mutants()[name], time.process_time(), 0, False, ""
    benches: dict[str, ClientBench] = {}
    for played, (kind, scenario) in enumerate(plays_of(seed, count), 1):
        try:
            with cpu_limit(SECONDS_FOR_ONE):
                bench = benches[kind] = benches.get(kind) or mutant_bench(mutant, kind)
                run = play_once(bench, scenario)
                shown = shown_by(run) - shipped_run(kind, scenario).shown
                found = min(shown & shown_by(play_once(bench, scenario)), default="") if shown else ""
                stuck = stuck or find_stuck(bench, kind, run)
        except CpuLimitExceeded:
            found = "the client hangs"
        except Exception as error:  # a mutant may raise anything
            found = f"the client raises {type(error).__name__}"
        if found or run.misconduct:
            return MutantOutcome(name, found or "misconduct", played, time.process_time() - begun)
        differs |= actions_of(run) != shipped_run(kind, scenario).actions
    return MutantOutcome(name, stuck, played, time.process_time() - begun, differs)


def find_stuck(bench: ClientBench, kind: str, run: ScenarioRun) -> str:
    """That a scenario cannot go on with a mutant, twice, and can with the shipped client; else ""."""
    is_stuck = run.blocked and not shipped_run(kind, run.scenario).blocked
    return CLIENT_STUCK if is_stuck and play_once(bench, run.scenario).blocked else ""


def play_once(bench: ClientBench, scenario: Scenario) -> ScenarioRun:
    """The run of a scenario, or of a schedule as one."""
    return run_virtual(bench.make_play().play(scenario, bench.facts))


def shown_by(run: ScenarioRun) -> frozenset[str]:
    """The requirements that a client violates, and the recommendations that it does not keep."""
    return run.verdict.violated | unusual_in(run)


def actions_of(run: ScenarioRun) -> tuple[tuple[int, str, str], ...]:
    """What a client did, with the times, but for the ids in it; in no order where that was at once, by chance."""
    done = ((event.time, event.kind.value, event.api) for event in run.events if event.kind in COMPARED_KINDS)
    return tuple(sorted(done))


@dataclass(frozen=True, slots=True)
class ShippedRun:
    """What the shipped client shows in a run, and what it does; `blocked` is why a scenario cannot go on with it."""

    shown: frozenset[str]
    blocked: str
    actions: tuple[tuple[int, str, str], ...]


@cache
def shipped_run(kind: str, scenario: Scenario) -> ShippedRun:
    """The run of the shipped client."""
    run = play_once(shipped_bench(kind), scenario)
    return ShippedRun(shown_by(run), run.blocked, actions_of(run))


@cache
def shipped_bench(kind: str) -> ClientBench:
    """The bench of the shipped client."""
    return mutant_bench(None, kind)
