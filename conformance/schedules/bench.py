"""Playing schedules in this process, on virtual time, each on a target of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fencepost.adapters.target import Target
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.execution.play import JudgeFunction, play_scenario
from fencepost.conformance.scenario.scenario import ScenarioRun
from fencepost.conformance.schedules.protocol import TargetScheduleProtocol
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

TargetFactory = Callable[[], Target]
TraceJudge = Callable[[Header, tuple[Event, ...], Mapping[str, bool]], TraceVerdict]
"""Judges a trace, given the reference differences (DIV-nn) that are settled for the target."""
NO_DECISIONS: Mapping[str, bool] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Bench:
    """Plays schedules: a target of its own for each, whose timers may be `grace` milliseconds late."""

    protocol: TargetScheduleProtocol
    make_target: TargetFactory
    grace: int = 0
    judge: TraceJudge = judge

    def play(self, schedule: Schedule, judge_trace: JudgeFunction | None = None) -> ScenarioRun:
        """Play a schedule and judge its trace: by `judge` without decisions, or by `judge_trace` if it is given."""

        async def judge_here(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            return self.judge(header, events, NO_DECISIONS)

        return run_virtual(self.play_on_new_target(schedule, judge_trace or judge_here))

    def play_decided(self, schedule: Schedule, decisions: Mapping[str, bool]) -> ScenarioRun:
        """As `play`, with these reference differences settled."""

        async def judge_here(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
            return self.judge(header, events, decisions)

        return self.play(schedule, judge_here)

    async def play_on_new_target(self, schedule: Schedule, judge_trace: JudgeFunction) -> ScenarioRun:
        """Open a target, play the schedule, and close the target."""
        target = self.make_target()
        description = await target.open()
        try:
            return await play_scenario(
                self.protocol.scenario_of(schedule),
                target,
                description,
                schedule.name,
                grace=self.grace,
                restart=target.restart,
                judge_trace=judge_trace,
            )
        finally:
            await target.close()

    def violated_by(self, schedule: Schedule) -> frozenset[str]:
        """The requirements that a schedule shows violated."""
        return self.play(schedule).verdict.violated

    def violated_by_new(self, schedule: Schedule) -> frozenset[str]:
        """As `violated_by`, for a schedule that is played the first time."""
        return self.violated_by(schedule)
