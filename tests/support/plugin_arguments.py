"""How a pytest that a test starts gets the plugin of this checkout."""

import os
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PLUGIN = "fencepost.conformance.testing.plugin"


def plugin_arguments() -> tuple[str, ...]:
    """The arguments that load the plugin: none where the installed package does it."""
    installed = any(each.value == PLUGIN for each in entry_points(group="pytest11"))
    return () if installed else ("-p", PLUGIN)


def run_apart(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run a test suite in a process of its own, warnings being errors."""
    pytester._monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / ".src"), str(ROOT)]))
    return pytester.runpytest_subprocess(*plugin_arguments(), "-W", "error", *arguments)
