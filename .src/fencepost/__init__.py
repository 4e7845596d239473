"""Fencepost: a model of the Kafka consumer-group protocol, and a kit that judges implementations by it.

    import fencepost

    report = fencepost.run("kafka://localhost:9092", only=["JOIN-*"], seed=7, schedules=50)
    assert report.is_conformant, fencepost.render_report(report)

    for event in fencepost.stream("bundled"):
        if isinstance(event, fencepost.events.ViolationConfirmed):
            print(event.requirement, event.failure.observed)

    verdict = fencepost.judge("group.jsonl")

The names in `__all__` are public and stable; all other modules are private. They are loaded when they are first used,
so that importing this package costs next to nothing.
"""

__version__ = "0.2.0"

TYPE_CHECKING = False  # as in typing, which costs more to import than all of this
if TYPE_CHECKING:
    from fencepost import errors, events, targets
    from fencepost.adapters.target import Target
    from fencepost.conformance.plan import ReplayResult
    from fencepost.conformance.reports.report import render_report
    from fencepost.conformance.results import Failure, Report, RequirementResult, Verdict
    from fencepost.conformance.run.context import ScenarioContext
    from fencepost.conformance.subject import Scenario
    from fencepost.conformance.testing.api import (
        KafkaTarget,
        RunOptions,
        arun,
        astream,
        bundled_target,
        judge,
        replay,
        requirements,
        run,
        scenario,
        stream,
    )
    from fencepost.model.catalogue.requirement import Requirement
    from fencepost.traces.files.trace_files import open_trace
    from fencepost.traces.verdict import TraceVerdict

__all__ = [
    "Failure",
    "KafkaTarget",
    "ReplayResult",
    "Report",
    "Requirement",
    "RequirementResult",
    "RunOptions",
    "Scenario",
    "ScenarioContext",
    "Target",
    "TraceVerdict",
    "Verdict",
    "arun",
    "astream",
    "bundled_target",
    "errors",
    "events",
    "judge",
    "open_trace",
    "render_report",
    "replay",
    "requirements",
    "run",
    "scenario",
    "stream",
    "targets",
]

_MODULES = ("errors", "events", "targets")
_HOMES = {
    "adapters.target": ("Target",),
    "conformance.testing.api": (
        "KafkaTarget",
        "RunOptions",
        "arun",
        "astream",
        "bundled_target",
        "judge",
        "replay",
        "requirements",
        "run",
        "scenario",
        "stream",
    ),
    "conformance.plan": ("ReplayResult",),
    "conformance.reports.report": ("render_report",),
    "conformance.results": ("Failure", "Report", "RequirementResult", "Verdict"),
    "conformance.run.context": ("ScenarioContext",),
    "conformance.subject": ("Scenario",),
    "model.catalogue.requirement": ("Requirement",),
    "traces.files.trace_files": ("open_trace",),
    "traces.verdict": ("TraceVerdict",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # so that type checkers know the names above and no others

    def __getattr__(name):
        """Load a public name when it is first used (PEP 562)."""
        from importlib import import_module

        if name in _MODULES:
            value = import_module(f"fencepost.{name}")
        elif name in _HOME_OF:
            value = getattr(import_module(f"fencepost.{_HOME_OF[name]}"), name)
        else:
            raise AttributeError(f"module 'fencepost' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
