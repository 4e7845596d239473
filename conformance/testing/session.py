"""The test session: its runs, one for each target, and the reports that come of them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.conformance.analysis.report_builder import merge_reports
from fencepost.conformance.reports.json_report import from_json, to_json
from fencepost.conformance.reports.report import render_summary, to_html
from fencepost.conformance.results import Report, RequirementResult, Scope, describe_kit
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.testing.case import Case, CaseContext, CaseId, Violation
from fencepost.conformance.testing.collection import CASE, choice_of, read_options
from fencepost.conformance.testing.group_schedule import GroupSchedule
from fencepost.conformance.testing.runs import RunChoices, SessionRun
from fencepost.conformance.testing.targets import (
    SessionPlan,
    TestedTarget,
    declared_deviations,
    make_session_run,
    schedule_player,
)
from fencepost.model.errors import FencepostError

TARGET = "fencepost_target"
NO_TARGET = """nothing to test: override the fixture fencepost_target, or name a broker with --fencepost-target

    @pytest.fixture(scope="session")
    def fencepost_target():
        return fencepost.testing.in_memory(MyCoordinator)"""
LOAD_NOTE = "{} workers played, each for itself; with -n alone, or --dist load, one of them does"
LEAVE_OUT = "What it does not have can be left out: in_memory(..., versions={'JoinGroup': (0, 9), ...})"
_SESSION = pytest.StashKey["KitSession"]()


class RunView:
    """The run on a target, as `fencepost_run` gives it."""

    def __init__(self, run: SessionRun) -> None:
        self._run = run

    def result(self, id: str) -> RequirementResult:
        """The result for a requirement; what it needs is played if it was not. Raises `KeyError` for one that no test
        asks for."""
        return self._run.result(id)

    @property
    def report(self) -> Report | None:
        """The report on what was asked for so far; None if that is nothing."""
        return self._run.report()


def plan_cases(cases: Iterable[CaseId], known: Mapping[str, str]) -> SessionPlan:
    """What the test cases that share a fixture `fencepost_target` want; requirements are in catalogue order."""
    cases = tuple(cases)
    ids = {case.requirement for case in cases}
    requirements = tuple(id for id in DEFAULT_SPECIFICATION.requirements if id in ids)
    return SessionPlan(requirements, known=known, schedules=sum(case.size for case in cases))


class KitSession:
    """What one test session does with the kit."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.options = read_options(config)
        self.plans: dict[object, SessionPlan] = {}
        """By the definition of the fixture `fencepost_target`."""
        self.runs: list[tuple[TestedTarget, SessionRun]] = []
        self.unusable: list[tuple[TestedTarget, str]] = []
        """Targets that cannot be used, with the reason."""
        self.sent: list[Report] = []
        """The reports of the workers of pytest-xdist."""
        self.notes: list[str] = []
        self.errors: list[str] = []
        self._choices: RunChoices | None = None

    @property
    def is_worker(self) -> bool:
        """Whether this is a worker of pytest-xdist, which gets some of the test cases and never knows which."""
        return hasattr(self.config, "workerinput")

    def select(self, items: Sequence[pytest.Item]) -> None:
        """Learn which test cases were selected."""
        found: dict[object, list[pytest.Item]] = {}
        for item in items:
            if CASE in getattr(item, "fixturenames", ()):
                found.setdefault(target_fixture(item), []).append(item)
        for fixture, members in found.items():
            known: dict[str, str] = {}
            for item in members:
                choice = choice_of(item)
                known |= choice.known if choice is not None else {}
            self.plans[fixture] = plan_cases(map(case_of, members), known)

    # -- fixtures -----------------------------------------------------------------------------------------------

    def case(self, request: pytest.FixtureRequest, target: TestedTarget) -> Case:
        """The test case that a fixture asks for; a declared deviation is expected to fail."""
        __tracebackhide__ = True
        id: CaseId = request.param
        plan = self.plans[target_fixture(request.node)]
        save = self.options.save or self.cache_folder()
        context = CaseContext(request.node.nodeid, plan.requirements, save, self.options.skips_undecided)
        requirement = DEFAULT_SPECIFICATION.requirements.get(id.requirement)
        if requirement is not None:
            known = declared_deviations(target, self.choices().profile, plan.known)
            if requirement.id in known:
                reason = known[requirement.id]
                request.node.add_marker(pytest.mark.xfail(raises=Violation, strict=True, reason=reason))
            told = {"requirement": requirement.id, "tier": requirement.tier, "source": requirement.source}
            request.node.user_properties.extend((name, str(value)) for name, value in told.items())
        return Case(id, lambda: self.run_on(target, request.node), context)

    def view(self, request: pytest.FixtureRequest, target: TestedTarget) -> RunView:
        """The run that a fixture asks for."""
        return RunView(self.run_on(target, request.node))

    def schedule(self, request: pytest.FixtureRequest, target: TestedTarget) -> GroupSchedule:
        """A new schedule for a test."""
        __tracebackhide__ = True
        try:
            player = schedule_player(target, self.choices())
        except FencepostError as error:
            pytest.fail(str(error), pytrace=False)
        return GroupSchedule(player, request.node.nodeid, self.options.save or self.cache_folder())

    def run_on(self, target: TestedTarget, node: pytest.Item) -> SessionRun:
        """The run on a target, which is made for its first test case. A target that cannot be used fails the test."""
        __tracebackhide__ = True
        for other, run in self.runs:
            if other is target or other == target:
                return run
        reason = next((told for other, told in self.unusable if other is target or other == target), "")
        if reason:
            pytest.fail(reason, pytrace=False)
        plan = self.plans.get(target_fixture(node), SessionPlan(()))
        expected = frozenset() if self.is_worker else frozenset(plan.requirements)
        plan = replace(
            plan, requirements=plan.requirements or tuple(DEFAULT_SPECIFICATION.requirements), expected=expected
        )
        try:
            made = make_session_run(target, self.choices(), plan)
        except (FencepostError, TypeError) as error:
            self.unusable.append((target, str(error)))
            pytest.fail(str(error), pytrace=False)
        self.runs.append((target, made))
        return made

    def choices(self) -> RunChoices:
        """The choices for runs; a profile that is none fails the test."""
        __tracebackhide__ = True
        if self._choices is None:
            try:
                self._choices = self.options.choices()
            except (FencepostError, OSError) as error:
                pytest.fail(str(error), pytrace=False)
        return self._choices

    def cache_folder(self) -> Path | None:
        """The folder for traces in the cache of pytest; None where it is switched off."""
        cache = getattr(self.config, "cache", None)
        return cache.mkdir("fencepost") if cache is not None else None

    # -- the end ------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Write the reports, or hand them to the controller of pytest-xdist."""
        self.notes += (note for _, run in self.runs for note in exception_note(run.exceptions()))
        if self.is_worker:
            own = [to_json(report) for report in self.own_reports()]
            self.config.workeroutput["fencepost"] = {"reports": own, "notes": self.notes}  # type: ignore[attr-defined]
            return
        for number, report in enumerate(self.reports(), 1):
            for path, render in ((self.options.json, to_json), (self.options.html, to_html)):
                if path is not None:
                    self.write(path if number == 1 else path.with_stem(f"{path.stem}-{number}"), render(report))

    def write(self, path: Path, text: str) -> None:
        """Write a report; if that fails, the summary says so."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            self.errors.append(f"cannot write the report: {path}: {error.strerror}")

    def add_sent(self, sent: Mapping[str, Any]) -> None:
        """Add the reports of a worker."""
        self.sent += map(from_json, sent["reports"])
        self.notes += [note for note in sent["notes"] if note not in self.notes]

    def own_reports(self) -> Iterator[Report]:
        """The reports of the runs in this process."""
        return (report for _, run in self.runs if (report := run.report()) is not None)

    def reports(self) -> list[Report]:
        """One report for each target that was tested, by its name."""
        by_name: dict[str, list[Report]] = {}
        for report in (*self.own_reports(), *self.sent):
            by_name.setdefault(report.target["name"], []).append(report)
        return [merge_parts(parts) for parts in by_name.values()]

    def show(self, terminal: pytest.TerminalReporter) -> None:
        """Show the verdicts by families and the outcome of each target."""
        reports = self.reports()
        if not reports and not self.errors:
            return
        terminal.section("fencepost")
        for report in reports:
            terminal.write_line(render_summary(report))
        players = Counter(report.target["name"] for report in (*self.own_reports(), *self.sent))
        notes = [LOAD_NOTE.format(count) for count in {*players.values()} - {1}]
        for line in (*notes, *self.notes, *self.errors):
            terminal.write_line(line)


def merge_parts(parts: Sequence[Report]) -> Report:
    """One report of the parts that several workers have of it."""
    if len(parts) == 1:
        return parts[0]
    merged = merge_reports(parts)
    order = list(DEFAULT_SPECIFICATION.requirements)
    results = tuple(sorted(merged.results, key=lambda result: order.index(result.id)))
    is_full = len(results) == len(order) and merged.scope is not Scope.SMOKE
    return replace(merged, results=results, scope=Scope.FULL if is_full else merged.scope)


def exception_note(exceptions: Sequence[str]) -> Iterator[str]:
    """The note on the exceptions of a coordinator."""
    if exceptions:
        scenarios = "1 scenario" if len(exceptions) == 1 else f"{len(exceptions)} scenarios"
        lines = [f"The coordinator raised an exception in {scenarios}, the first was:", *exceptions[0].splitlines()]
        yield "\n  ".join(lines)
        yield LEAVE_OUT


def describe_cases(items: Iterable[pytest.Item]) -> str:
    """The kit, its catalogue, and how many of the requirements and random schedules were selected."""
    cases = {case_of(item) for item in items if CASE in getattr(item, "fixturenames", ())}
    kit = describe_kit(DEFAULT_SPECIFICATION)
    requirements, schedules = len({case.requirement for case in cases} - {""}), sum(case.size for case in cases)
    drawn = f", {schedules} random schedules" if schedules else ""
    chosen = f"{requirements} of {kit.requirements} requirements{drawn}"
    return f"fencepost: {kit.version}, catalogue {kit.catalogue[:12]}, {chosen}"


def case_of(item: pytest.Item) -> CaseId:
    """What a test case is about."""
    case: CaseId = item.callspec.params[CASE]  # type: ignore[attr-defined]
    return case


def target_fixture(node: pytest.Item) -> object:
    """The definition of the fixture `fencepost_target` that a test uses."""
    definitions = getattr(getattr(node, "_fixtureinfo", None), "name2fixturedefs", {}).get(TARGET)
    return definitions[-1] if definitions else None


def session_of(config: pytest.Config) -> KitSession:
    """What the test session does with the kit; begun now if it was not."""
    if _SESSION not in config.stash:
        config.stash[_SESSION] = KitSession(config)
    return config.stash[_SESSION]


def has_session(config: pytest.Config) -> bool:
    """Whether the test session does anything with the kit."""
    return _SESSION in config.stash


def target_of_options(config: pytest.Config) -> TestedTarget:
    """The target that the options name; a session without one fails the test."""
    __tracebackhide__ = True
    options = session_of(config).options
    if not options.target:
        pytest.fail(NO_TARGET, pytrace=False)
    return options.target
