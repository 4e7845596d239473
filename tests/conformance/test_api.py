"""The public Python API: its names and signatures, the modules that it imports, and its behaviour."""

import asyncio
import inspect
import re
import subprocess
import sys
import typing
from functools import partial
from pathlib import Path

import pytest

import fencepost
from fencepost import events
from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.plan import ReplayOutcome
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from tests.support.faulty_coordinators import FORGIVING

SIGNATURES = {
    "KafkaTarget": "(address: str, profile: str | PathLike[str] | None = None) -> None",
    "arun": "(target: AnyTarget, **options: RunOptions) -> Report",
    "astream": "(target: AnyTarget, **options: RunOptions) -> AsyncGenerator[RunEvent, None]",
    "bundled_target": "(**settings: int) -> Target",
    "judge": "(trace: str | PathLike[str] | Iterable[Event], header: Header | None = None) -> TraceVerdict",
    "open_trace": "(path: str | PathLike[str]) -> tuple[Header, Iterator[Event]]",
    "render_report": "(report: Report, *, colour: bool = False, width: int | None = None) -> str",
    "replay": "(trace: str | PathLike[str], target: AnyTarget, *, profile: str | PathLike[str] | None = None)"
    " -> ReplayResult",
    "requirements": "(*patterns: str) -> tuple[Requirement, ...]",
    "run": "(target: AnyTarget, **options: RunOptions) -> Report",
    "scenario": "(*requirements: str, needs: tuple[str, ...] = ()) -> "
    "Callable[[Callable[[ScenarioContext], Coroutine[Any, Any, None]]], Scenario]",
    "stream": "(target: AnyTarget, **options: RunOptions) -> Generator[RunEvent, None, None]",
}
ALIASES = {
    "str | KafkaTarget | Target | Callable[[], Target]": "AnyTarget",
    "Callable[['ScenarioContext'], Coroutine[Any, Any, None]]": "ScenarioFunction",
    " | ".join(each.__name__ for each in typing.get_args(events.RunEvent)): "RunEvent",
}
TYPES = {
    "Failure": (
        *("trace", "step", "observed", "allowed", "guard", "schedule", "replay", "replayed"),
        *("title", "differences", "rule", "state", "wrong_step", "kind", "excerpt"),
    ),
    "ReplayResult": ("outcome", "requirement", "failure", "note", "specification", "others", "gone", "stays"),
    "Report": (
        *("target", "seed", "results", "rules", "schedules", "events", "seconds", "cut_short", "coverage"),
        *("undecided", "ended", "scope", "specification", "unclassified", "facts", "idle_findings"),
        *("provenance", "kit", "members"),
    ),
    "Requirement": ("id", "level", "title", "sentence", "source", "testability", "needs", "why", "since"),
    "RequirementResult": ("id", "verdict", "note", "checks", "failures", "causes", "remark", "more_failures"),
    "Scenario": ("name", "requirements", "play", "needs", "smoke"),
    "TraceVerdict": (
        *("violations", "check_results", "rules", "decisions", "inconclusive", "events", "transitions"),
        "recommendations",
    ),
    "RunOptions": (
        *("only", "smoke", "slow", "seed", "schedules", "tours", "profile", "scenarios", "save", "traces"),
        *("exclude", "max_failures", "seconds", "shrink_seconds"),
    ),
}
OTHERS = {"ScenarioContext", "Target", "Verdict", "errors", "events", "targets"}
ERRORS = {"FencepostError", "ProfileError", "ReportError", "TargetError", "TraceError", "UnknownRequirement"}
HEAVY = ("z3", "networkx", "hypothesis", "pytest", "numpy", "pyspark")


def forgiving_target() -> fencepost.Target:
    """A target of somebody's own that breaks HB-04: it accepts heartbeats of any generation."""
    return InProcessTarget(BUNDLED_SETTINGS, make_coordinator=FORGIVING)


def loaded_modules(code: str) -> set[str]:
    """The modules that are loaded in a fresh interpreter after some code."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


# --- names


def test_public_names() -> None:
    assert set(fencepost.__all__) == SIGNATURES.keys() | TYPES.keys() | OTHERS
    assert set(fencepost.__all__) <= set(dir(fencepost))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = fencepost.nonsense  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_signatures(name: str) -> None:
    text = re.sub(r"\b(?:\w+\.)+(?=\w)", "", str(inspect.signature(getattr(fencepost, name))))
    text = re.sub(r"\*\*options: .*?RunOptions\W*\)", "**options: RunOptions)", text)
    for long, short in ALIASES.items():
        text = text.replace(long, short)
    assert text == SIGNATURES[name]


@pytest.mark.parametrize("name", sorted({*fencepost.__all__} - {"errors", "events", "targets"}))
def test_public_names_are_documented(name: str) -> None:
    assert inspect.getdoc(getattr(fencepost, name))


@pytest.mark.parametrize("name", sorted(TYPES))
def test_fields(name: str) -> None:
    assert tuple(inspect.get_annotations(getattr(fencepost, name))) == TYPES[name]


def test_errors_have_one_base() -> None:
    from fencepost import errors

    named = {name: getattr(errors, name) for name in ERRORS}
    assert all(issubclass(each, errors.FencepostError) for each in named.values())


def test_importing_the_package_loads_none_of_the_rooms() -> None:
    assert not {name for name in loaded_modules("import fencepost; dir(fencepost)") if name.startswith("fencepost.")}


def test_a_run_loads_no_solver_and_no_test_framework() -> None:
    assert not loaded_modules("import fencepost\nfencepost.run('bundled', only=['HB-05'])") & set(HEAVY)
    assert not loaded_modules("import fencepost\nfencepost.judge, fencepost.replay") & set(HEAVY)


# --- what they do


def test_requirements_by_pattern() -> None:
    assert [each.id for each in fencepost.requirements("HB-0[45]")] == ["HB-04", "HB-05"]
    with pytest.raises(fencepost.errors.UnknownRequirement):
        fencepost.requirements("NO-*")


def test_run_on_the_bundled_target() -> None:
    report = fencepost.run("bundled", only=["HB-04", "HB-05"], seed=3)
    assert report.is_conformant and not report.failed_results()
    assert report.result("HB-05").verdict is fencepost.Verdict.PASS
    assert fencepost.render_report(report).startswith("Target: ")


@pytest.mark.parametrize("target", [forgiving_target, forgiving_target()], ids=["fresh ones", "one"])
def test_a_target_of_ones_own(target: fencepost.targets.AnyTarget) -> None:
    report = fencepost.run(target, only=["HB-04", "HB-05"])
    assert [result.id for result in report.failed_results()] == ["HB-04"]
    assert not report.is_conformant


def test_random_schedules_on_a_target_of_ones_own() -> None:
    report = fencepost.run(fencepost.bundled_target, only=["HB-05"], schedules=3)
    assert report.is_conformant and report.coverage is not None and report.coverage.schedules == 3


def test_a_failure_is_judged_and_replayed(tmp_path: Path) -> None:
    fencepost.run(forgiving_target, only=["HB-04"], save=tmp_path / "failures")
    (path,) = (tmp_path / "failures").iterdir()
    verdict = fencepost.judge(path)
    assert "HB-04" in {check.requirement for check in verdict.check_results if check.status == "fail"}
    header, trace = fencepost.open_trace(path)
    assert fencepost.judge(trace, header).violations == verdict.violations
    assert fencepost.replay(path, forgiving_target).outcome is ReplayOutcome.STILL_FAILS
    assert fencepost.replay(path, "bundled").outcome is ReplayOutcome.FIXED


def test_events_need_their_header() -> None:
    with pytest.raises(TypeError, match="header"):
        fencepost.judge([])


def test_the_stream_of_a_run() -> None:
    seen = list(fencepost.stream(forgiving_target, only=["HB-04"]))
    first, *between, last = seen
    assert isinstance(first, events.RunStarted) and first.requirements == ("HB-04",)
    assert isinstance(last, events.RunFinished)
    assert last.report.schedules == sum(isinstance(each, events.ScenarioFinished) for each in between)
    (confirmed,) = (each for each in between if isinstance(each, events.ViolationConfirmed))
    assert (confirmed.requirement, confirmed.failure.replayed) == ("HB-04", True)
    assert confirmed.failure in last.report.result("HB-04").failures


def test_schedules_in_the_stream() -> None:
    seen = list(fencepost.stream("bundled", only=["HB-05"], schedules=4))
    assert sum(isinstance(each, events.ScheduleFinished) for each in seen) == 4


def test_a_stream_that_is_closed_ends_its_run() -> None:
    stream = fencepost.stream("bundled")
    assert isinstance(next(stream), events.RunStarted)
    stream.close()


def test_a_run_that_is_cancelled_reports_what_it_has() -> None:
    async def cancel_soon() -> fencepost.Report:
        started = asyncio.Event()
        seen: list[events.RunEvent] = []

        async def collect() -> fencepost.Report:
            async for event in fencepost.astream("bundled"):
                seen.append(event)
                started.set()
            (last,) = seen[-1:]
            assert isinstance(last, events.RunFinished)
            return last.report

        task = asyncio.create_task(collect())
        await started.wait()
        task.cancel()
        return await task

    assert asyncio.run(cancel_soon()).cut_short


@fencepost.scenario("HB-05")
async def heartbeat_of_a_lone_member(group: fencepost.ScenarioContext) -> None:
    """The one member of a stable group heartbeats."""
    (member,) = await group.form_stable_group(group.member("A"))
    await group.check("HB-05", group.heartbeat(member))


def test_a_scenario_of_ones_own() -> None:
    run = partial(fencepost.stream, only=["HB-05"])
    seen = list(run("bundled", scenarios=[heartbeat_of_a_lone_member]))
    (mine,) = (
        each for each in seen if isinstance(each, events.ScenarioFinished) and each.name == "heartbeat-of-a-lone-member"
    )
    assert [(check.requirement, check.status) for check in mine.verdict.check_results] == [("HB-05", "pass")]
    with pytest.raises(fencepost.errors.UnknownRequirement):
        fencepost.scenario("NO-01")


def test_errors_of_arguments_and_targets() -> None:
    with pytest.raises(fencepost.errors.TargetError, match="is no target"):
        fencepost.run("nonsense")
    with pytest.raises(fencepost.errors.ProfileError):
        fencepost.run("bundled", profile="/does/not/exist.toml")
    with pytest.raises(fencepost.errors.UnknownRequirement):
        next(fencepost.stream("bundled", only=["NO-*"]))
    with pytest.raises(fencepost.errors.TargetError):
        next(fencepost.stream(fencepost.KafkaTarget("127.0.0.1:1")))
    with pytest.raises(TypeError, match="lists of patterns"):
        fencepost.run("bundled", only="JOIN-*")
