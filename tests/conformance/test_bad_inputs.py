"""Bad inputs: one line, exit code 2, no traceback, nothing lost.

A sample; `python -m tests.acceptance robustness` has all, each in a process of its own.
"""

from collections import Counter
from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from tests.support.bad_inputs.bad_input import (
    PASSWORD,
    SAMPLES,
    BadInput,
    Outcome,
    broken_promises,
    prepare_folder,
    run_here,
)
from tests.support.bad_inputs.registry import KINDS, all_bad_inputs
from tests.support.odd_servers import ODD_SERVERS, SERVER_COMMANDS, serve_oddly, server_case

MIN_INPUTS, MIN_SERVERS = 300, 12
SHARE = 9
"""One of so many inputs of each kind is in the sample."""
SAMPLE = [case for make in KINDS.values() for case in list(make())[::SHARE]]


@pytest.mark.extra("dpkt")
@pytest.mark.extra("pyspark")
@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_a_bad_input_gets_one_line(case: BadInput, tmp_path: Path) -> None:
    prepare_folder(case, tmp_path)
    outcome = run_here(case.words, tmp_path)
    assert broken_promises(case, outcome, tmp_path) == [], outcome


def test_there_are_enough_of_them_and_no_two_are_alike() -> None:
    cases = all_bad_inputs()
    assert len(cases) >= MIN_INPUTS
    assert [name for name, count in Counter(case.name for case in cases).items() if count > 1] == []
    tried = Counter((case.words, tuple(case.files.items())) for case in cases)
    assert [key[0] for key, count in tried.items() if count > 1] == []


GOOD = Outcome(2, "", "fencepost: t.jsonl:1: not JSON\n")


@pytest.mark.parametrize(
    ("outcome", "broken"),
    [
        (GOOD, []),
        (Outcome(None, "", ""), ["it goes on after 120 s"]),
        (Outcome(1, "", GOOD.err), ["exit code 1"]),
        (Outcome(2, "report", GOOD.err), ["output"]),
        (Outcome(2, "", GOOD.err * 2), ["2 lines"]),
        (Outcome(2, "", "fencepost: not JSON\n"), ["'t.jsonl' is not named"]),
        (Outcome(2, "", f"fencepost: t.jsonl {'x' * 600}\n"), ["a line of 619 characters"]),
        (Outcome(2, "", "fencepost: t.jsonl \x1b[31m\n"), ["characters that upset a terminal"]),
        (Outcome(2, "", "fencepost: Traceback t.jsonl\n"), ["a traceback"]),
        (Outcome(2, "", "oh, t.jsonl\n"), ["the line does not say who speaks: 'oh, t.jsonl'"]),
        (Outcome(2, "", f"{GOOD.err[:-1]} {PASSWORD}\n"), ["a password"]),
    ],
)
def test_each_promise_can_be_broken(outcome: Outcome, broken: list[str], tmp_path: Path) -> None:
    case = BadInput("x", ("judge", "t.jsonl"), "t.jsonl", {"t.jsonl": b"x"})
    prepare_folder(case, tmp_path)
    assert broken_promises(case, outcome, tmp_path) == broken


def test_files_that_were_changed_or_left_behind_are_seen(tmp_path: Path) -> None:
    case = BadInput("x", ("judge", "t.jsonl"), "t.jsonl", {"t.jsonl": b"x", "u.jsonl": b"x"}, report="r.json")
    prepare_folder(case, tmp_path)
    (tmp_path / "t.jsonl").write_text("y")
    (tmp_path / "u.jsonl").unlink()
    (tmp_path / "v.jsonl").touch()
    assert broken_promises(case, GOOD, tmp_path) == [
        "t.jsonl was changed",
        "u.jsonl was changed",
        "v.jsonl was left behind",
        "no report on why nothing was tested",
    ]


def test_a_good_input_is_not_refused(tmp_path: Path) -> None:
    """The inputs that the bad ones are made of."""
    (tmp_path / "t.jsonl").write_bytes(SAMPLES.trace)
    (tmp_path / "t.jsonl.gz").write_bytes(SAMPLES.trace_gz)
    (tmp_path / "r.html").write_text(SAMPLES.page, encoding="utf-8")
    assert main(["judge", str(tmp_path / "t.jsonl")]) == 0
    assert main(["judge", str(tmp_path / "t.jsonl.gz")]) == 0
    assert main(["report", str(tmp_path / "r.html")]) == 1


# --- odd servers

QUICK = [name for name, server in ODD_SERVERS.items() if not server.is_slow]
COMMANDS = list(SERVER_COMMANDS)


@pytest.mark.real_time
@pytest.mark.parametrize("name", QUICK)
def test_an_odd_server_gets_one_line(name: str, tmp_path: Path) -> None:
    """With one of the commands; the acceptance check has all of them, and the servers that make the kit wait."""
    with serve_oddly(name) as address:
        case = server_case(name, COMMANDS[QUICK.index(name) % len(COMMANDS)], address)
        prepare_folder(case, tmp_path)
        outcome = run_here(case.words, tmp_path)
    assert broken_promises(case, outcome, tmp_path) == [], outcome
    assert ODD_SERVERS[name].reason in outcome.err


def test_there_are_enough_odd_servers() -> None:
    assert len(QUICK) >= MIN_SERVERS
