"""The public module for test suites: its names, their signatures, and its imports."""

import inspect
import re
import subprocess
import sys

import pytest

import fencepost.testing

SIGNATURES = {
    "broker": "(address: str = '', *, start: str | Sequence[str] = (), kill: str | Sequence[str] = (), "
    "profile: str | PathLike[str] | None = None) -> Broker",
    "conformance": "(*patterns: Any, exclude: Sequence[str] = (), known: Mapping[str, str] | None = None) -> Any",
}
IN_MEMORY_OPTIONS = ("factory", "settings", "topics", "versions", "restart")
METHODS = {
    "Case": {"check", "id", "requirement", "result"},
    "GroupSchedule": {"check", "form_stable_group", "group", "member", "restart", "send", "topic_id"}
    | {"wait", "wait_for_responses"},
    "Recorder": set(),
    "Recording": {"bootstrap", "check", "notices", "path"},
    "RunView": {"report", "result"},
    "ScheduleMember": {"commit", "earlier_id", "generation", "heartbeat", "id", "join", "leave", "send", "sync"},
    "ServedCoordinator": {"create_topic", "groups", "requests"},
}


def test_public_names() -> None:
    for name in fencepost.testing.__all__:
        assert inspect.getdoc(getattr(fencepost.testing, name)), name
    assert set(fencepost.testing.__all__) <= set(dir(fencepost.testing))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = fencepost.testing.nonsense  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    text = str(inspect.signature(getattr(fencepost.testing, name)))
    assert re.sub(r"\b(?:\w+\.)+(?=\w)", "", text) == SIGNATURES[name]


def test_the_options_of_a_coordinator_in_memory() -> None:
    assert tuple(inspect.signature(fencepost.testing.in_memory).parameters) == IN_MEMORY_OPTIONS


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    kind = getattr(fencepost.testing, name)
    assert {each for each in dir(kind) if not each.startswith("_")} == METHODS[name]


def test_importing_the_module_loads_nothing_else() -> None:
    command = [sys.executable, "-c", "import fencepost.testing, sys; print(*(n for n in sys.modules if 'fence' in n))"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) <= {"fencepost", "fencepost.testing"} | {each for each in loaded if "editable" in each}
