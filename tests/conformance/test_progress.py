import io

import pytest

from fencepost.conformance.events import Progress
from fencepost.conformance.reports.progress import ProgressDisplay, format_duration, progress_line


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (Progress(0, 80, 0.0), "0/80 schedules, 0.0 s"),
        (Progress(20, 80, 5.0, current="JOIN-29"), "20/80 schedules, 5.0 s, about 15.0 s left: JOIN-29"),
        (Progress(20, 80, 60.0, failures=2), "20/80 schedules, 2 violated, 1 min 00 s, about 3 min 00 s left"),
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
