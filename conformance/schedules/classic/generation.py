"""Schedules out of Hypothesis: a seed and a number give the same chunk of them, whoever asks."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from fencepost.conformance.schedules.classic.multi_step_rules import Cuts, Stories
from fencepost.conformance.schedules.classic.simulation import Forecast
from fencepost.conformance.schedules.schedule import Role, Schedule
from fencepost.model.classic.coordinator.state import Outcome, World
from fencepost.model.classic.messages.requests import Request
from fencepost.model.settings import Settings
from fencepost.traces.model_transitions import Transition, transition

LENGTHS = (4, 8, 8, 12, 16)
"""How many rules a schedule has, by chunk."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a target allows schedules to do; its timers may be `grace` milliseconds late."""

    settings: Settings
    restarts: bool = True
    transactions: bool = True
    patient: bool = True
    grace: int = 0
    cuts: bool = False
    """Connections are cut while requests are sent. What a seed gives depends on it."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A schedule, and the transitions of the model that it is foretold to show, with how often; how long it takes, and
    how long until it needs the target restarted, in milliseconds (0: it does not)."""

    schedule: Schedule
    transitions: Mapping[Transition, int]
    length: int = 0
    lead: int = 0

    @property
    def rules(self) -> frozenset[str]:
        """The rules of these transitions."""
        return frozenset(each.rule for each in self.transitions)


def draw(ground: Ground, run: int, chunk: int, size: int) -> list[Drawn]:
    """So many schedules, named by the run's seed, the chunk and their place in it."""
    found: list[Drawn] = []
    length = random.Random(f"{run} {chunk}").choice(LENGTHS)

    class Drawing(Cuts if ground.cuts else Stories):  # type: ignore[misc]
        restarts = ground.restarts
        transactions = ground.transactions
        patient = ground.patient

        def begin(self, cast: tuple[Role, ...]) -> Forecast:
            self.foretold: Counter[Transition] = Counter()

            def witness(before: World, request: Request | None, outcome: Outcome) -> None:
                self.foretold[transition(before, request, outcome)] += 1

            return Forecast(cast, ground.settings, witness, grace=ground.grace, virtual=ground.patient)

        def end(self, schedule: Schedule, forecast: Forecast) -> None:
            forecast.close()
            name = f"schedule-{run}-{chunk}-{len(found)}"
            found.append(Drawn(replace(schedule, name=name), self.foretold, forecast.length, forecast.lead))

        def _pretty_print(self, value: Any) -> str:
            return ""

    options = settings(
        max_examples=size,
        stateful_step_count=length,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        derandomize=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    run_state_machine_as_test(seed(f"{run} {chunk}")(Drawing), settings=options)
    return found[:size]
