"""The documents under docs: their code runs and prints the output that they show."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.plugin_arguments import run_apart
from tests.support.readme import fenced_blocks

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
EXAMPLE = DOCS / "examples" / "pytest"
TUTORIAL = (DOCS / "pytest.md").read_text()
VIOLATED = (
    {"JOIN-04", "JOIN-22", "JOIN-50", "SYNC-04", "HB-04", "HB-10", "LEAVE-05", "LEAVE-07", "LEAVE-10", "TIMER-12"},
    {"JOIN-50", "SYNC-04", "HB-04", "HB-10", "LEAVE-10", "TIMER-12"},
    {"JOIN-50", "LEAVE-10", "TIMER-12"},
    {"LEAVE-10", "TIMER-12"},
    {"LEAVE-10"},
    set[str](),
)
"""What fails at first, and after each step of the tutorial."""
BROKER = f"{sys.executable} -m tests.support.foreground_broker . calm"
APPLICATION = """
def run_my_application(bootstrap):
    from tests.support.tcp_application import consume_one
    assert consume_one(bootstrap) == b"one"
"""


def apply_diff(source: str, diff: str) -> str:
    """The source after one step. Raises `AssertionError` if the lines to be replaced are not there, once."""
    before = "".join(line[1:] for line in diff.splitlines(True) if line[0] in "- ")
    after = "".join(line[1:] for line in diff.splitlines(True) if line[0] in "+ ")
    assert source.count(before) == 1, before
    return source.replace(before, after)


def versions() -> Iterator[str]:
    """The first try, and the coordinator after each step."""
    source = (EXAMPLE / "first_try.py").read_text()
    yield source
    for diff in fenced_blocks(TUTORIAL, "diff"):
        source = apply_diff(source, diff)
        yield source


def failed_cases(lines: list[str]) -> set[str]:
    """The ids of the test cases that failed."""
    return {line.partition("[")[2].partition("]")[0] for line in lines if line.startswith("FAILED")}


def assert_in_order(shown: str, output: str) -> None:
    """Each line that the tutorial shows is in the output, in this order."""
    lines = iter(output.splitlines())
    for wanted in shown.splitlines():
        assert any(line.endswith(wanted.strip()) for line in lines), wanted


def test_the_steps_lead_to_the_coordinator() -> None:
    *_, last = versions()
    assert last == (EXAMPLE / "coordinator.py").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("step", range(6))
def test_the_reader_sees_what_the_tutorial_says(pytester: pytest.Pytester, step: int) -> None:
    (pytester.path / "coordinator.py").write_text(list(versions())[step])
    (pytester.path / "test_conformance.py").write_text((EXAMPLE / "test_conformance.py").read_text())
    result = run_apart(pytester)
    assert failed_cases(result.outlines) == VIOLATED[step]
    if step < 5:
        assert_in_order(fenced_blocks(TUTORIAL, "text")[step], result.stdout.str())


def test_the_first_lines_are_the_example() -> None:
    def words(source: str) -> list[str]:
        return re.findall(r"\w+", source.replace("VERSIONS", ""))

    example = (EXAMPLE / "test_conformance.py").read_text()
    assert set(words(fenced_blocks(TUTORIAL, "python")[0])) <= set(words(example))


@pytest.mark.slow
@pytest.mark.parametrize("place", range(1, 5), ids=["broker", "schedule", "fake", "recorder"])
def test_the_code_runs(pytester: pytest.Pytester, place: int) -> None:
    pytest.importorskip("confluent_kafka", reason="the extra dev")
    code = fenced_blocks(TUTORIAL, "python")[place].replace("./my-broker --port 0", BROKER)
    (pytester.path / "test_it.py").write_text(code + APPLICATION)
    result = run_apart(pytester, "--fencepost-target", "bundled", "-k", "not HB-0 or HB-05")
    assert result.ret == 0 and result.parseoutcomes()["passed"] >= 1
