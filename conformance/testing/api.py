"""What `fencepost` offers to programs: runs, scenarios and targets of their own, judging and replaying traces."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, Unpack

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Channel, Description, Exchange, Target, TraceBuilder
from fencepost.conformance.events import RunEvent
from fencepost.conformance.plan import BUNDLED, Plan, ReplayResult, default_schedules
from fencepost.conformance.profile import load_profile
from fencepost.conformance.results import Report
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS, BundledRun
from fencepost.conformance.run.context import ScenarioFunction
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.replay import judge_trace, replay_in_process, replay_trace
from fencepost.conformance.run.runner import make_run
from fencepost.conformance.run.stream import TraceSaver, consume, stream_events
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.subject import Scenario, select_requirements
from fencepost.conformance.testing.threads import iterate_in_thread
from fencepost.model.catalogue.requirement import Requirement, matching_ids
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.trace_files import open_trace
from fencepost.traces.judge.judge import judge as judge_events
from fencepost.traces.verdict import TraceVerdict

# -- targets ----------------------------------------------------------------------------------------------------------

__all__ = [
    "AnyTarget",
    "Channel",
    "Description",
    "Event",
    "Exchange",
    "Header",
    "KafkaTarget",
    "Kind",
    "Order",
    "Settings",
    "Target",
    "TraceBuilder",
    "bundled_target",
]


@dataclass(frozen=True, slots=True)
class KafkaTarget:
    """A cluster that speaks the Kafka protocol, with the profile that says what cannot be asked of it.

    `address` is "host:port", "kafka://host:port" or "kafka+ssl://host:port", with commas between several. `profile` is
    the path of a TOML file, see `fencepost.conformance.profile`; without one the target cannot be restarted and has
    no declared deviations.
    """

    address: str
    profile: str | os.PathLike[str] | None = None

    @property
    def url(self) -> str:
        """The address as the command line takes it."""
        return with_scheme(self.address)

    @property
    def profile_path(self) -> Path | None:
        """Where the profile is, None without one."""
        return Path(self.profile) if self.profile is not None else None


def with_scheme(address: str) -> str:
    """An address as the command line takes it."""
    return address if not address or "://" in address else f"kafka://{address}"


AnyTarget: TypeAlias = str | KafkaTarget | Target | Callable[[], Target]
"""What `run` and its like take:

- "bundled", the coordinator that comes with the kit, or "kafka://host:port";
- a `KafkaTarget`, which has a profile too;
- a `Target` of your own, in this process and on virtual time: its clock is that of the running event loop. It is opened
  and closed for every scenario, each time on an event loop of its own;
- a function without arguments that makes such a target: then every scenario has a fresh one.
"""


def bundled_target(**settings: int) -> Target:
    """The bundled coordinator as a target in this process, to be tested, wrapped or compared with.

    `settings` replace fields of `Settings` (times in milliseconds); the others are those of `fencepost test bundled`.
    Raises `TypeError` for a name that is no setting.
    """
    return InProcessTarget(replace(BUNDLED_SETTINGS, **settings))


def target_factory(target: Target | Callable[[], Target]) -> Callable[[Settings], Target]:
    """A function that gives the target for every scenario, with its own settings whatever it is asked for."""
    if callable(target):
        return lambda settings: target()
    return lambda settings: target


# -- scenarios of your own --------------------------------------------------------------------------------------------


def scenario(*requirements: str, needs: tuple[str, ...] = ()) -> Callable[[ScenarioFunction], Scenario]:
    """Turn an async function of a `ScenarioContext` into a scenario that `run` takes in `scenarios`.

        @scenario("HB-05")
        async def heartbeat_of_a_lone_member(context): ...

    `requirements` are the ids that its checks are about: it is played if one of them is asked for. `needs` are the
    capabilities without which it cannot be played, such as "restart". It is named after the function. Raises
    `UnknownRequirement` for an id that the catalogue does not have, and `ValueError` without any.
    """
    if not requirements:
        raise ValueError("a scenario needs the id of a requirement, such as HB-05")
    matching_ids(DEFAULT_SPECIFICATION.requirements.values(), requirements)

    def make_scenario(play: ScenarioFunction) -> Scenario:
        return Scenario(play.__name__.replace("_", "-"), requirements, play, needs)

    return make_scenario


# -- running the kit against a target ---------------------------------------------------------------------------------

Folder = str | os.PathLike[str]


class RunOptions(TypedDict, total=False):
    """The options of a run; all of them may be left out.

    - `only`: ids of requirements or patterns such as "JOIN-*"; all requirements by default.
    - `smoke`: play the smoke scenarios alone. `slow`: also wait out the fixed timer of 300 s on a real clock.
    - `seed`: of everything random, 0 by default. `schedules`: how many random schedules are played after the scenarios,
      by default 60 in this process, 20 over the network, none with `smoke` or `only`. `tours`: how many transition
      tours are played besides them.
    - `profile`: the path of a profile; that of a `KafkaTarget` comes first.
    - `scenarios`: further scenarios, made with `scenario`.
    - `exclude`: ids or patterns of requirements that are left out. `max_failures`, `seconds`: end the run after so many
      failed requirements or seconds. `shrink_seconds`: how long failing schedules are shrunk in all, 60 s by default.
    - `save`: a folder for the traces of failures, `traces` one for all traces; they are made if need be.
    """

    only: Sequence[str]
    smoke: bool
    slow: bool
    seed: int
    schedules: int | None
    tours: int
    profile: Folder | None
    scenarios: Sequence[Scenario]
    save: Folder | None
    traces: Folder | None
    exclude: Sequence[str]
    max_failures: int | None
    seconds: float | None
    shrink_seconds: float | None


def requirements(*patterns: str) -> tuple[Requirement, ...]:
    """The requirements whose id fits one of the patterns ("JOIN-29", "JOIN-*"), in catalogue order; all of them
    without patterns. Raises `UnknownRequirement` for a pattern that none fits."""
    return select_requirements(patterns)


def run(target: AnyTarget, **options: Unpack[RunOptions]) -> Report:
    """Test a target and return the report.

    For `target` see `AnyTarget`, for `options` see `RunOptions`. Ctrl-C ends the run early; its report has `cut_short`
    set. Call `arun` where an event loop is running. Runs over the network, and bundled ones with hundreds of schedules,
    start processes: a script calls them below `if __name__ == "__main__":`.

    Raises `TargetError` if the target cannot be used, `ProfileError`, `UnknownRequirement`, `OSError` if a folder
    cannot be made, and `KeyboardInterrupt` if Ctrl-C comes before anything was judged. Whatever ends the run later,
    there is a report; its `ended` gives the reason.
    """
    return asyncio.run(arun(target, **options))


async def arun(target: AnyTarget, **options: Unpack[RunOptions]) -> Report:
    """As `run`, in async code. When cancelled it returns the report on what was judged so far, with `cut_short` set."""
    return await consume(astream(target, **options))


def stream(target: AnyTarget, **options: Unpack[RunOptions]) -> Generator[RunEvent, None, None]:
    """Test a target and yield the events of the run (see `fencepost.events`), the report in the last one.

    The run goes on in a thread of its own while an event is looked at. Closing the generator ends the run. Arguments
    and errors are those of `run`.
    """
    return iterate_in_thread(run_starter(target, **options))


async def astream(target: AnyTarget, **options: Unpack[RunOptions]) -> AsyncGenerator[RunEvent, None]:
    """As `stream`, in async code. When its consumer is cancelled the run is cut short, and its report still follows."""
    async with aclosing(run_starter(target, **options)()) as events:
        async for event in events:
            yield event


def run_starter(target: AnyTarget, **options: Unpack[RunOptions]) -> Callable[[], AsyncGenerator[RunEvent, None]]:
    """Check the arguments of a run and return a function that starts it. Raises as `run` for what can be checked."""
    told: dict[str, Any] = dict(options)
    if unknown := told.keys() - RunOptions.__annotations__.keys():
        raise TypeError(f"a run has no option {min(unknown)!r}")
    only, exclude, scenarios = (told.pop(name, ()) for name in ("only", "exclude", "scenarios"))
    if isinstance(only, str) or isinstance(exclude, str):
        raise TypeError("only and exclude take lists of patterns, as in only=['JOIN-*']")
    schedules, profile = told.pop("schedules", None), told.pop("profile", None)
    if schedules is None:
        is_remote = isinstance(target, KafkaTarget) or (isinstance(target, str) and target != BUNDLED)
        schedules = default_schedules(remote=is_remote, smoke=told.get("smoke", False), patterns=only)
    plan = Plan(
        target if isinstance(target, str) else "target",
        tuple(only),
        excluded=tuple(exclude),
        schedules=schedules,
        profile=Path(profile) if profile is not None else None,
        save=_make_folder(told.pop("save", None)),
        traces=_make_folder(told.pop("traces", None)),
        **told,
    )
    chosen = select_requirements(plan.patterns, plan.excluded)
    make_run = _make_run(target, plan, scenarios)
    saver = TraceSaver(plan.save, plan.traces)

    async def start() -> AsyncGenerator[RunEvent, None]:
        run = make_run()
        async with aclosing(stream_events(lambda emit: run.run(chosen, emit), saver)) as events:
            async for event in events:
                yield event

    return start


def _make_run(target: AnyTarget, plan: Plan, scenarios: Sequence[Scenario]) -> Callable[[], BundledRun | RemoteRun]:
    """A function that makes the run on a target. Raises `ProfileError`."""
    if isinstance(target, KafkaTarget):
        path = target.profile_path if target.profile_path is not None else plan.profile
        plan = replace(plan, target=target.url, profile=path)
    profile = load_profile(plan.profile)
    if isinstance(target, str | KafkaTarget):
        return lambda: make_run(plan, profile, scenarios)
    return lambda: BundledRun(plan, profile, target_factory(target), scenarios=scenarios, can_configure=False)


def _make_folder(folder: Folder | None) -> Path | None:
    """Make a folder if need be; None stays None. Raises `OSError`."""
    if folder is None:
        return None
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return path


# -- recorded traces --------------------------------------------------------------------------------------------------


def judge(trace: str | os.PathLike[str] | Iterable[Event], header: Header | None = None) -> TraceVerdict:
    """Judge a recorded trace against the model; no target is needed.

    `trace` is the path of a trace file, or its events in order: these need the `header` that says how they were seen.
    The verdict has the violations, the results of checks, and what could not be decided and why. Raises `TraceError`
    for a file that is no trace, `OSError` for one that cannot be read, and `TypeError` for events without a header.
    """
    if isinstance(trace, str | os.PathLike):
        path = Path(trace)
        return judge_trace(path, *open_trace(path)).verdict
    if header is None:
        raise TypeError("events are judged by the header of their trace: judge(events, header)")
    return judge_events(header, tuple(trace))


def replay(
    trace: str | os.PathLike[str], target: AnyTarget, *, profile: str | os.PathLike[str] | None = None
) -> ReplayResult:
    """Drive the schedule of a trace against a target, judge the responses and compare: is a recorded failure fixed?

    For `target` see `AnyTarget`; "bundled" has the settings of the recorded target. The result has an `outcome` (fixed,
    still fails, different or inconclusive) and the failure, if there is one. Not for async code, where
    `await asyncio.to_thread(replay, ...)` serves. Raises `TraceError` for a file that cannot be replayed, `OSError`,
    `TargetError` and `ProfileError`.
    """
    path = Path(trace)
    if isinstance(target, KafkaTarget):
        at = target.profile_path if target.profile_path is not None else profile
        return asyncio.run(replay_trace(path, target.url, load_profile(Path(at) if at is not None else None)))
    if isinstance(target, str):
        return asyncio.run(replay_trace(path, target, load_profile(Path(profile) if profile is not None else None)))
    return asyncio.run(replay_in_process(path, target_factory(target)))
