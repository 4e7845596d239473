"""Extraction of one trace from a corpus, as a file that `replay`, `judge` and `report` take."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc

from fencepost.traces.files.jsonl import decode_event
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.file_systems import open_parquet
from fencepost.traces.pipeline.recordings import RecordingFiles, TraceFile, group_recordings, line_offsets
from fencepost.traces.pipeline.schema import EVENTS, TRACES


def parse_finding(finding: str) -> tuple[str, int | None]:
    """The trace and the event that a finding names as TRACE:EVENT, or as "TRACE, event EVENT", which is how a report
    has them; None without an event."""
    for separator in (":", ", event "):
        trace, found, event = finding.rpartition(separator)
        if found and event.isdecimal():
            return trace, int(event)
    return finding, None


def extract_trace(corpus: Corpus, finding: str, output: Path) -> int:
    """Write the trace of a finding to `output`, and return its number of events.

    The finding is a trace, or TRACE:EVENT. The parts of a recording make one trace. Raises `PipelineError` if it is not
    in the corpus, and `OSError`; an existing file is not overwritten.
    """
    trace, event = parse_finding(finding)
    with corpus.read() as now:
        recording, header = find_recording(now, trace)
        lines = [line for each, begins, _ in line_offsets(recording) for line in intact_lines(now, each.trace, begins)]
    if event is not None and not any(decode_event(line).sequence == event for line in lines):
        raise PipelineError(f"{trace} has no event {event} in {corpus.folder}")
    with output.open("xb") as out:
        out.writelines([header, *lines])
    return len(lines)


def find_recording(corpus: Corpus, trace: str) -> tuple[RecordingFiles, bytes]:
    """The files of the trace that a file belongs to, and its header line. Raises `PipelineError`."""
    headers: dict[str, bytes] = {}
    files: list[TraceFile] = []
    for name in corpus.files(TRACES):
        for row in open_parquet(name).read().to_pylist():
            headers[row["trace"]] = row["header"]
            counts = (row["events"], row["lines"], row["flawed"], row["marked"])
            files.append(TraceFile(row["trace"], *counts, {}, row["recording"], row["part"], row["continued"]))
    for recording in group_recordings(files):
        if any(each.trace == trace for each in recording):
            return recording, headers[recording[0].trace]
    raise PipelineError(f"{corpus.folder} has no trace {trace}: give TRACE:EVENT as a report has them")


def intact_lines(corpus: Corpus, trace: str, begins: int) -> Iterator[bytes]:
    """The lines of the events of a file that come after line `begins` and before the first bad line, in order."""
    found: dict[int, bytes] = {}
    for name in corpus.files(EVENTS):
        for batch in open_parquet(name).iter_batches(columns=["trace", "line", "intact", "text"]):
            mine = batch.filter(pc.and_(pc.equal(batch["trace"], trace), batch["intact"]))
            found.update(zip(mine["line"].to_pylist(), mine["text"].to_pylist(), strict=True))
    return (found[line] for line in sorted(found) if line > begins)
