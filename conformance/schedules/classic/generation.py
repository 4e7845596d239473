"""Generates schedules with Hypothesis: a seed and a batch number give the same schedules in every process."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from fencepost.conformance.schedules.classic.moves.cast import MemberRole
from fencepost.conformance.schedules.classic.multi_step_rules import ConnectionCutRules, MultiStepRules
from fencepost.conformance.schedules.classic.simulation import Simulation
from fencepost.conformance.schedules.schedule import GeneratedSchedule, Schedule
from fencepost.conformance.schedules.scope import ScheduleScope
from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.messages.requests import Request
from fencepost.traces.judge.classic.transitions import transition_of
from fencepost.traces.model_transitions import Transition

SCHEDULE_LENGTHS = (4, 8, 8, 12, 16)
"""How many rules a schedule has; one of these is chosen for each batch."""


def generate_schedules(scope: ScheduleScope, run: int, batch: int, size: int) -> list[GeneratedSchedule]:
    """`size` schedules, named by the seed of the run, the number of the batch and their number in it."""
    found: list[GeneratedSchedule] = []
    length = random.Random(f"{run} {batch}").choice(SCHEDULE_LENGTHS)

    class GeneratingMachine(ConnectionCutRules if scope.cuts else MultiStepRules):  # type: ignore[misc]
        restarts = scope.restarts
        transactions = scope.transactions
        virtual_time = scope.virtual_time

        def start_simulation(self, cast: tuple[MemberRole, ...]) -> Simulation:
            self.predicted: Counter[Transition] = Counter()

            def count_transition(before: GroupState, request: Request | None, result: StepResult) -> None:
                self.predicted[transition_of(before, request, result)] += 1

            return Simulation(cast, scope.settings, count_transition, grace=scope.grace, virtual=scope.virtual_time)

        def collect(self, schedule: Schedule, simulation: Simulation) -> None:
            simulation.close()
            name = f"schedule-{run}-{batch}-{len(found)}"
            found.append(
                GeneratedSchedule(
                    replace(schedule, name=name), self.predicted, simulation.duration, simulation.restart_at
                )
            )

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
    run_state_machine_as_test(seed(f"{run} {batch}")(GeneratingMachine), settings=options)
    return found[:size]
