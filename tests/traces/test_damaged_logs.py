"""Logs, dumps and segments that are damaged anyhow: they are read or refused, and accuse nobody."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fencepost.traces.files.trace_files import TraceError, open_trace
from fencepost.traces.importers.broker_log import import_log
from fencepost.traces.importers.offsets_topic import import_offsets
from fencepost.traces.judge.judge import judge
from tests.support.log_stories import DATA, tell_trace

LOGS = sorted(DATA.glob("*.log"))
STORED = [*sorted(DATA.glob("dump*")), *DATA.glob("*/*.log")]
PIECES = (b"\n", b'{"', b'"groupId":[1]', b"group=5 ", b"-1", b"9" * 20, b"\0", b"}", b'"generation":"x"')
Import = Callable[[Sequence[Path], Path], object]


def damage(draw: random.Random, content: bytes) -> bytes:
    """The content with pieces cut out, doubled, changed or put in, or with its lines in any order."""
    left = bytearray(content)
    for _ in range(draw.choice((1, 3, 10, 60))):
        start = draw.randrange(len(left) + 1)
        end = min(len(left), start + draw.randrange(1, 80))
        match draw.randrange(5):
            case 0:
                left[start:end] = b""
            case 1:
                left[start : start + 1] = bytes([draw.randrange(256)])
            case 2:
                left[start:start] = left[start:end]
            case 3:
                left[start:start] = draw.choice(PIECES)
            case _:
                rows = bytes(left).split(b"\n")
                draw.shuffle(rows)
                left = bytearray(b"\n".join(rows))
    return bytes(left)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize(("read", "sources"), [(import_log, LOGS), (import_offsets, STORED)], ids=["logs", "stored"])
def test_damaged_files_are_read_or_refused_and_accuse_nobody(
    read: Import, sources: list[Path], seed: int, tmp_path: Path
) -> None:
    draw = random.Random(seed)
    paths = [tmp_path / f"{number}.log" for number in range(draw.choice((1, 1, 2)))]
    for path in paths:
        path.write_bytes(damage(draw, draw.choice(sources).read_bytes()))
    try:
        read(paths, tmp_path / "trace.jsonl")
    except TraceError:
        return
    header, events = open_trace(tmp_path / "trace.jsonl")
    assert judge(header, list(events)).violations == ()
    tell_trace(tmp_path)


def test_lines_in_any_order_are_sorted(tmp_path: Path) -> None:
    rows = (DATA / "broker.log").read_text().splitlines(keepends=True)
    random.Random(1).shuffle(rows)
    (tmp_path / "shuffled.log").write_text("".join(rows))
    told = import_log([tmp_path / "shuffled.log"], tmp_path / "trace.jsonl")
    assert told.notes == ["shuffled.log is in no order of time and was sorted"]
    import_log([DATA / "broker.log"], tmp_path / "whole.jsonl")
    one, other = (told_by(tmp_path / name) for name in ("trace.jsonl", "whole.jsonl"))
    assert one == other


def told_by(path: Path) -> list[tuple[int, str]]:
    """The steps in a trace with their times, whatever their order at one moment."""
    bodies = [(event.time, event.body) for event in open_trace(path)[1]]
    return sorted((time, repr([body.get(name) for name in ("group", "step", "generation")])) for time, body in bodies)
