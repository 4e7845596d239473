"""The entry points of runs: test, replay, judge, serve."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path

from fencepost.adapters.address import TargetError, describe_listen_error, format_address
from fencepost.adapters.security.settings import SecuritySettings
from fencepost.adapters.serve.coordination import CorruptLogError
from fencepost.adapters.serve.server import serve_forever as run_server
from fencepost.conformance.analysis import trace_report
from fencepost.conformance.events import Progress, RunEvent
from fencepost.conformance.plan import BUNDLED, Plan, ReplayResult
from fencepost.conformance.profile import Profile, load_profile
from fencepost.conformance.results import Report
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.provenance import record_judging
from fencepost.conformance.run.registry import is_bundled, protocol_of_target
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.replay import replay_trace as replay_script
from fencepost.conformance.run.stream import TraceSaver, consume, stream_events
from fencepost.conformance.run.workers import WorkerPool, run_tasks
from fencepost.conformance.subject import Scenario, select_requirements
from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.settings import Settings
from fencepost.traces.history.builder import TraceHistory


def stream(plan: Plan) -> AsyncGenerator[RunEvent, None]:
    """The events of a run on the plan's target; the traces that the plan asks for are saved on the way.

    When the consumer is cancelled, the last event is the report on what was judged so far. Raises `ProfileError` and
    `UnknownRequirement` at once, `TargetError` when it is iterated.
    """
    profile = load_profile(plan.profile)
    requirements = requirements_of(plan)
    run = make_run(plan, profile)
    return stream_events(lambda emit: run.run(requirements, emit), TraceSaver(plan.save, plan.traces))


def make_run(plan: Plan, profile: Profile, scenarios: Sequence[Scenario] = ()) -> BundledRun | RemoteRun:
    """The run on the plan's target; `scenarios` are played besides those of the kit. Raises `TargetError`."""
    protocol = protocol_of_target(plan.target)
    if is_bundled(plan.target):
        refuse_network_sections(profile)
        make, configurable = protocol.make_bundled, plan.target == BUNDLED
        return BundledRun(plan, profile, make, scenarios=scenarios, can_configure=configurable, protocol=protocol)
    return RemoteRun(plan, profile, scenarios=scenarios, protocol=protocol)


def requirements_of(plan: Plan) -> tuple[Requirement, ...]:
    """The requirements that the plan selects, of the protocol that its target speaks. Raises `UnknownRequirement`."""
    specification = protocol_of_target(plan.target).specification
    return select_requirements(plan.patterns, plan.excluded, specification)


def refuse_network_sections(profile: Profile) -> None:
    """Raises `TargetError` for what a profile says in vain about the bundled coordinator."""
    told = [("[target]", bool(profile.start)), ("[security]", profile.security != SecuritySettings())]
    for section, is_there in told:
        if is_there:
            raise TargetError(
                f"{section} of the profile is for a target that is reached over the network, not for {BUNDLED}; "
                "name its address, or leave the section out"
            )


async def run(plan: Plan, *consumers: Callable[[RunEvent], None]) -> Report:
    """Test a target, save the traces that the plan asks for, and hand the events of the run to the consumers. When
    cancelled, return what was judged so far, with `cut_short` set."""
    return await consume(stream(plan), *consumers)


async def replay(trace: Path, target: str, profile: Path | None) -> ReplayResult:
    """Drive the schedule of a trace against a target, judge the responses and compare them with the trace."""
    told = load_profile(profile)
    if target == BUNDLED:
        refuse_network_sections(told)
    return await replay_script(trace, target, told)


def judge_files(
    paths: Sequence[Path],
    progress: Callable[[Progress], None],
    histories: list[TraceHistory] | None = None,
    jobs: int = 1,
) -> Report:
    """Judge recorded traces in so many processes; `histories` get those of groups. When interrupted, return the report
    on those judged so far, with `cut_short` set."""
    provenance = record_judging()
    if jobs == 1 or len(paths) == 1:
        return replace(trace_report.judge_files(paths, progress, histories), provenance=provenance)
    with WorkerPool(jobs) as pool:
        judged = trace_report.judge_files(paths, progress, histories, partial(judge_parts, pool, jobs))
    return replace(judged, provenance=provenance)


def judge_parts(
    pool: Executor, jobs: int, parts: Sequence[Sequence[Path]], has_histories: bool
) -> Iterator[trace_report.JudgedPart]:
    """Judge parts of the files in worker processes, and yield what was found in their order."""
    work = partial(judge_numbered_part, has_histories)
    done: dict[int, trace_report.JudgedPart] = {}
    following = 0
    for (number, _), found in run_tasks(pool, jobs, work, list(enumerate(parts)), lambda task: str(task[1][0])):
        done[number] = found
        while following in done:
            yield done.pop(following)
            following += 1


def judge_numbered_part(has_histories: bool, part: tuple[int, Sequence[Path]]) -> trace_report.JudgedPart:
    """Judge one part of the files."""
    return trace_report.judge_part(part[1], has_histories)


async def serve(
    host: str,
    port: int,
    storage: Path | None,
    announce: Callable[[str], None],
    slowness: int = 0,
    nodes: int = 1,
    dialect: str = "kafka",
) -> None:
    """Serve the bundled coordinator until cancelled; `announce` gets the bootstrap address once it listens."""
    try:
        await run_server(
            host,
            port,
            Settings(),
            storage,
            lambda at, listening: announce(format_address(at, listening)),
            slowness,
            nodes,
            dialect,
        )
    except CorruptLogError as error:
        raise TargetError(str(error)) from error
    except (OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise TargetError(describe_listen_error(host, port, error)) from None
