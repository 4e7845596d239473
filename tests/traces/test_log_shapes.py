"""Logs in drawn shapes: each tells the story of its plain lines, and none accuses Apache Kafka."""

from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.traces.events import Event
from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.importers.broker_log import import_log
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict
from tests.support.log_shapes import LogShape, draw_client_shape, draw_shape

QUICK_SEEDS = range(24)
ACCEPTANCE_SEEDS = range(10_000, 12_000)


def story_of(folder: Path, contents: tuple[bytes, ...]) -> tuple[list[tuple[int, dict[str, object]]], TraceVerdict]:
    """The steps in logs of these contents without their places, and the verdict on them."""
    paths = []
    for number, content in enumerate(contents):
        paths.append(folder / f"server.log.{number}")
        paths[-1].write_bytes(content)
    import_log(paths, folder / "trace.jsonl")
    header, events = open_trace(folder / "trace.jsonl")
    seen: list[Event] = list(events)
    steps = [(event.time, {k: v for k, v in event.body.items() if k not in ("file", "line")}) for event in seen]
    return steps, judge(header, seen)


def check_shape(shape: LogShape, folder: Path) -> None:
    """Raises AssertionError if the log is misread or accuses somebody."""
    try:
        told, verdict = story_of(folder, shape.files)
    except TraceError:
        assert not shape.is_whole, shape.name
        return
    assert verdict.violations == (), shape.name
    if shape.is_whole:
        expected, _ = story_of(folder, (shape.plain,))
        assert told == expected, shape.name


@pytest.mark.parametrize("seed", QUICK_SEEDS)
def test_a_drawn_log_tells_the_story_of_its_lines(seed: int, tmp_path: Path) -> None:
    check_shape(draw_shape(seed), tmp_path)


@pytest.mark.parametrize("seed", QUICK_SEEDS)
def test_a_drawn_log_of_a_client_tells_the_story_of_its_lines(seed: int, tmp_path: Path) -> None:
    check_shape(draw_client_shape(seed), tmp_path)


@pytest.mark.slow
@pytest.mark.acceptance
@pytest.mark.parametrize("start", range(ACCEPTANCE_SEEDS.start, ACCEPTANCE_SEEDS.stop, 100))
def test_two_thousand_drawn_logs_tell_the_stories_of_their_lines(start: int, tmp_path: Path) -> None:
    for seed in range(start, start + 100):
        check_shape(draw_shape(seed), tmp_path)
        check_shape(draw_client_shape(seed), tmp_path)


def test_a_log_that_tells_another_story_is_seen(tmp_path: Path) -> None:
    shape = draw_shape(1)
    other = replace(shape, plain=shape.plain.replace(b"generation 1", b"generation 2"), is_whole=True)
    with pytest.raises(AssertionError):
        check_shape(other, tmp_path)
