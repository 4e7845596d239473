"""Testing coordinators and applications with pytest: the names that test suites use.

    import pytest
    from fencepost.testing import conformance, in_memory

    @pytest.fixture(scope="session")
    def fencepost_target():
        return in_memory(MyCoordinator)

    @conformance
    def test_group_protocol(fencepost_case):
        fencepost_case.check()

The plugin comes with the package; its fixtures are `fencepost_case`, `fencepost_run`, `fencepost_schedule`,
`fencepost_coordinator` and `fencepost_recorder`. The names in `__all__` are public and stable, and are loaded when they
are first used.
"""

TYPE_CHECKING = False  # as in typing, which costs more to import than all of this
if TYPE_CHECKING:
    from fencepost.conformance.testing.api import judge
    from fencepost.conformance.testing.case import Case
    from fencepost.conformance.testing.collection import conformance
    from fencepost.conformance.testing.in_memory import (
        AsyncCoordinator,
        Coordinator,
        Request,
        Response,
        Storage,
        Topics,
    )
    from fencepost.conformance.testing.group_schedule import GroupSchedule, ScheduleMember
    from fencepost.conformance.testing.in_memory import in_memory
    from fencepost.conformance.testing.recording import Recorder, Recording
    from fencepost.conformance.testing.targets import ServedCoordinator, TestedTarget
    from fencepost.conformance.testing.session import RunView
    from fencepost.conformance.testing.in_memory import in_memory_stream
    from fencepost.conformance.testing.targets import broker
    from fencepost.conformance.testing.case import Undecided, Violation
    from fencepost.model.settings import Settings

__all__ = [
    "AsyncCoordinator",
    "Case",
    "Coordinator",
    "GroupSchedule",
    "Recorder",
    "Recording",
    "Request",
    "Response",
    "RunView",
    "ScheduleMember",
    "ServedCoordinator",
    "Settings",
    "Storage",
    "TestedTarget",
    "Topics",
    "Undecided",
    "Violation",
    "broker",
    "conformance",
    "in_memory",
    "in_memory_stream",
    "judge",
]

_HOMES = {
    "conformance.testing.api": ("judge",),
    "conformance.testing.case": ("Case", "Undecided", "Violation"),
    "conformance.testing.collection": ("conformance",),
    "conformance.testing.group_schedule": ("GroupSchedule", "ScheduleMember"),
    "conformance.testing.in_memory": (
        "AsyncCoordinator",
        "Coordinator",
        "Request",
        "Response",
        "Storage",
        "Topics",
        "in_memory",
        "in_memory_stream",
    ),
    "conformance.testing.recording": ("Recorder", "Recording"),
    "conformance.testing.session": ("RunView",),
    "conformance.testing.targets": ("ServedCoordinator", "TestedTarget", "broker"),
    "model.settings": ("Settings",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # so that type checkers know the names above and no others

    def __getattr__(name):
        """Load a public name when it is first used (PEP 562)."""
        from importlib import import_module

        if name not in _HOME_OF:
            raise AttributeError(f"module 'fencepost.testing' has no attribute {name!r}")
        value = getattr(import_module(f"fencepost.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
