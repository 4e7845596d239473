"""Systematic mutants of the model of the reference client: guards and comparisons, each changed by one operator.

A mutant is found if a schedule shows a violation twice, if the client raises an error, or if it hangs. One that does
the same as the shipped client in all schedules that are compared is not told apart.
"""

import pkgutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from fencepost.conformance.clients.classic import DRIVEN_CLIENTS
from fencepost.conformance.clients.classic.schedules.protocol import ClassicClientSchedules
from fencepost.conformance.clients.play import ClientPlay, ClientScenarioRun
from fencepost.conformance.clients.schedule_bench import ClientBench
from fencepost.conformance.clients.stage import ClientFacts
from fencepost.conformance.schedules.schedule import GeneratedSchedule
from fencepost.conformance.zoo.mutation.module_copies import load_changed, source_of
from fencepost.conformance.zoo.mutation.mutants import Mutant, all_mutants, apply_mutant
from fencepost.conformance.zoo.mutation.operators import OPERATORS
from fencepost.conformance.zoo.timeouts import CpuLimitExceeded, cpu_limit
from fencepost.model.classic import member
from fencepost.traces.events import Kind

GUARD_OPERATORS = frozenset({"always", "never", "comparison"})
EXCLUDED = frozenset({"client", "rule_table", "specification", "step"})
"""Modules without decisions: values and tables."""
_DRIVER, _SETTINGS = "fencepost.adapters.client.reference.driver", "fencepost.model.classic.member.settings"
SECONDS_FOR_ONE = 20.0
COMPARED_KINDS = (Kind.REQUEST, Kind.CALLBACK, Kind.POLL)
KINDS = ("eager", "cooperative", "static")
"""The clients that a mutant is made of, one after the other."""


@dataclass(frozen=True, slots=True)
class MutantOutcome:
    """What was found about a mutant: by which requirement or error, after how many schedules and seconds of a core.
    Where nothing was, `differs` says whether it did anything else than the shipped client."""

    name: str
    found: str
    schedules: int
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
    strategies = {"cooperative": (module.COOPERATIVE_STICKY,)}.get(kind, (module.RANGE, module.ROUND_ROBIN))
    return module.ClientSettings(
        strategies=strategies,
        instance="i" if kind == "static" else None,
        session_timeout=6_000,
        heartbeat_interval=500,
        max_poll_interval=6_000,
        auto_commit_interval=1_000,
        reset_policy=module.ResetPolicy.EARLIEST,
    )


def make_play(driver: Any, settings: Any) -> ClientPlay:
    """A play with the client of a copied module."""
    subject = driver.ReferenceSubject(settings, is_driven=True)
    follow = DRIVEN_CLIENTS.follow
    return ClientPlay(subject, "mutant", follow, subject.start_cluster, 30.0, clock="virtual", is_driven=True)


@contextmanager
def mutant_bench(mutant: Mutant | None, kind: str) -> Iterator[ClientBench]:
    """A bench for a mutant, or for the shipped client; it raises what the mutant raises when it is loaded."""
    changed = {} if mutant is None else {mutant.module: apply_mutant(source_of(mutant.module), mutant)}
    modules = load_changed(changed, [_DRIVER, _SETTINGS])
    settings = settings_of(modules[_SETTINGS], kind)
    names = tuple(strategy.name for strategy in settings.strategies)
    facts = ClientFacts(names, settings.session_timeout, settings.rebalance_timeout)
    yield ClientBench(ClassicClientSchedules(is_driven=True), partial(make_play, modules[_DRIVER], settings), facts)


def schedules_of(seed: int, count: int) -> list[GeneratedSchedule]:
    """The schedules of a seed."""
    return ClassicClientSchedules(is_driven=True).generate(seed, 0, count)


def hunt_mutant(name: str, seed: int, count: int) -> MutantOutcome:
    """Play so many schedules with a mutant, dealt to the kinds of clients, until it is found."""
    mutant, begun, played = client_mutants()[name], time.process_time(), 0
    differs = False
    try:
        with cpu_limit(SECONDS_FOR_ONE):
            for kind in KINDS:
                with mutant_bench(mutant, kind) as bench:
                    for generated in schedules_of(seed, count):
                        played += 1
                        run = bench.play_client(generated.schedule)
                        again = run.verdict.violated and bench.violated_by(generated.schedule)
                        if both := sorted(run.verdict.violated & (again or frozenset())):
                            return MutantOutcome(name, both[0], played, time.process_time() - begun)
                        if run.misconduct:
                            return MutantOutcome(name, "misconduct", played, time.process_time() - begun)
                        differs |= actions_of(run) != shipped_actions(kind, seed, count)[generated.schedule.name]
    except CpuLimitExceeded:
        return MutantOutcome(name, "the client hangs", played, time.process_time() - begun)
    except Exception as error:  # a mutant may raise anything
        return MutantOutcome(name, f"the client raises {type(error).__name__}", played, time.process_time() - begun)
    return MutantOutcome(name, "", played, time.process_time() - begun, differs)


def actions_of(run: ClientScenarioRun) -> tuple[tuple[int, str, str], ...]:
    """What a client did, with the times, but for the ids in it."""
    return tuple((event.time, event.kind.value, event.api) for event in run.events if event.kind in COMPARED_KINDS)


@cache
def shipped_actions(kind: str, seed: int, count: int) -> dict[str, tuple[tuple[int, str, str], ...]]:
    """What the shipped client does in each of the schedules."""
    with mutant_bench(None, kind) as bench:
        return {each.schedule.name: actions_of(bench.play_client(each.schedule)) for each in schedules_of(seed, count)}
