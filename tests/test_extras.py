"""Tests where an extra is not installed: skipped, or failed in CI."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import extras
from tests.support.extras import missing_extra, reason_to_skip, skip_without_extra

ROOT = Path(__file__).parent.parent
CORE_TESTS = """
import sys
sys.modules.update(dict.fromkeys({modules!r}))
import pytest
options = "-q --collect-only -n 0 -p no:cacheprovider -c pyproject.toml".split()
sys.exit(pytest.main([*options, "tests/model/test_rules.py"]))
"""


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> ModuleNotFoundError:
    """What an import of pyspark raises where it is not installed."""
    monkeypatch.setattr(extras, "MISSING_MODULES", frozenset({"pyspark"}))
    return ModuleNotFoundError("No module named 'pyspark.sql'", name="pyspark.sql")


def test_a_test_that_lacks_an_extra_is_skipped(
    without_spark: ModuleNotFoundError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="pyspark is not installed"), skip_without_extra():
        raise without_spark


def test_in_ci_it_fails(without_spark: ModuleNotFoundError, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert reason_to_skip(without_spark) is None
    with pytest.raises(ModuleNotFoundError), skip_without_extra():
        raise without_spark


def test_other_missing_modules_are_errors(without_spark: ModuleNotFoundError) -> None:
    assert missing_extra(ModuleNotFoundError("No module named 'tests.x'", name="tests.x")) is None
    assert missing_extra(ModuleNotFoundError("No module named 'dpkt'", name="dpkt")) is None, "dpkt is installed"
    assert missing_extra(AssertionError()) is None


def test_core_tests_are_collected_without_any_extra() -> None:
    script = CORE_TESTS.format(modules=extras.EXTRA_MODULES)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
