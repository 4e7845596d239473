import io
from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from fencepost.conformance.events import Progress
from fencepost.conformance.reports.progress import ProgressDisplay, progress_line
from fencepost.conformance.reports.words import format_duration
from fencepost.model.settings import Settings
from tests.support.served_coordinator import serve_in_thread


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (Progress(0, 80, 0.0), "0/80 schedules, 0.0 s"),
        (Progress(20, 80, 5.0, current="JOIN-29"), "20/80 schedules, 5.0 s, about 15.0 s left: JOIN-29"),
        (Progress(20, 80, 60.0, failures=2), "20/80 schedules, 2 violated, 1 min 00 s, about 3 min 00 s left"),
        (Progress(20, 80, 5.0, are_at_once=True), "20/80 schedules, 5.0 s"),
        (Progress(30, 80, 130.0, pace_from=(120.0, 20)), "30/80 schedules, 2 min 10 s, about 50.0 s left"),
        (Progress(20, 80, 130.0, pace_from=(120.0, 20)), "20/80 schedules, 2 min 10 s"),
        (
            Progress(20, 80, 5.0, after_restart=24, are_at_once=True, current="JOIN-29"),
            "20/80 schedules, 5.0 s, 24 after a restart: JOIN-29",
        ),
        (Progress(80, 80, 90.0), "80/80 schedules, 1 min 30 s"),
        (Progress(81, 80, 90.0), "81/80 schedules, 1 min 30 s"),
        (Progress(0, 0, 1.0), "0/0 schedules, 1.0 s"),
    ],
)
def test_a_line_says_how_much_is_done_and_left(progress: Progress, expected: str) -> None:
    assert progress_line(progress) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.04, "0.0 s"), (59.94, "59.9 s"), (59.96, "1 min 00 s"), (119.6, "2 min 00 s"), (3725, "62 min 05 s")],
)
def test_durations(seconds: float, expected: str) -> None:
    assert format_duration(seconds) == expected


def test_on_a_terminal_one_line_is_rewritten_and_finally_cleared() -> None:
    stream = io.StringIO()
    display = ProgressDisplay(stream, live=True)
    display(Progress(1, 2, 1.0, current="x" * 200))
    display(Progress(2, 2, 2.0))
    display.close()
    long = "1/2 schedules, 1.0 s, about 1.0 s left: "
    assert stream.getvalue() == (f"\r\x1b[K{long}{'x' * (79 - len(long))}\r\x1b[K2/2 schedules, 2.0 s\r\x1b[K")


def test_elsewhere_only_tenths_and_new_failures_are_worth_a_line() -> None:
    stream = io.StringIO()
    display = ProgressDisplay(stream, live=False)
    for done in range(101):
        display(Progress(done, 100, float(done), failures=1 if done >= 55 else 0))
    display.close()
    lines = stream.getvalue().splitlines()
    assert [int(line.partition("/")[0]) for line in lines] == [10, 20, 30, 40, 50, 55, 60, 70, 80, 90, 100]
    assert lines[5] == "55/100 schedules, 1 violated, 55.0 s, about 45.0 s left"


@pytest.mark.parametrize(("columns", "shown"), [(40, 39), (None, 79), (200, 142)])
def test_the_line_is_as_wide_as_the_terminal(columns: int | None, shown: int) -> None:
    stream = io.StringIO()
    ProgressDisplay(stream, live=True, columns=lambda: columns)(Progress(0, 0, 0.0, current="x" * 120))
    line = "0/0 schedules, 0.0 s: " + "x" * 120
    assert stream.getvalue() == f"\r\x1b[K{line[:shown]}"


@pytest.mark.real_time
def test_over_the_network_no_number_is_better_than_a_wrong_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The schedules that take longest are the last to end, and some begin only after the restart."""
    settings = Settings(min_session_timeout=500, initial_rebalance_delay=200, offsets_partitions=2)
    profile = tmp_path / "p.toml"
    with serve_in_thread(settings) as address:
        profile.write_text(f"[target]\nstart = 'echo {address}'\nkill = 'true'\n")
        main(["test", address, "--only", "HB-0*", "FAILOVER-01", "--profile", str(profile)])
    lines = [line for line in capsys.readouterr().err.splitlines() if " schedules, " in line]
    assert " after a restart" in lines[0] and "restart" not in lines[-1]
    assert not any("left" in line for line in lines)
