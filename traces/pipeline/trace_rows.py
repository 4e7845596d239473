"""Where the rows of each trace are in the table of events, and reading of them in the order of their lines, by Arrow.

Whoever writes a corpus writes the rows of a trace one after the other: they are a run of rows in one file. Another tool
that rewrites a table may spread them over several runs, which are merged.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.traces.files.jsonl import decode_event
from fencepost.traces.files.rotating_writer import is_next_part
from fencepost.traces.pipeline import PipelineError
from fencepost.traces.pipeline.corpus import Corpus, find_name
from fencepost.traces.pipeline.files import open_parquet
from fencepost.traces.pipeline.parallel import Spark, map_parallel
from fencepost.traces.pipeline.tables import EVENTS, SCHEMAS, TRACES

FILES_AT_ONCE = 16
"""How many files are read at once."""


class Run(NamedTuple):
    """Rows of one trace with ascending lines, one after the other in a file: the first of them and their number."""

    file: str
    row: int
    rows: int
    line: int
    """The line of the first."""


Runs: TypeAlias = Mapping[str, Sequence[Run]]
"""By trace, in the order of their first lines."""


def locate_rows(spark: Spark, corpus: Corpus) -> Runs:
    """The runs of all traces of a corpus. Workers look for them if there are many files."""
    files = corpus.sized_files(EVENTS)
    if len(files) <= FILES_AT_ONCE:
        with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
            found = list(pool.map(lambda file: list(find_runs(file.location)), files))
    else:
        found = map_parallel(
            spark, files, lambda part: [run for file in part for run in find_runs(file.location)], lambda *_: None
        )
    runs: dict[str, list[Run]] = {}
    for trace, run in sorted((each for part in found for each in part), key=lambda each: each[1].line):
        runs.setdefault(trace, []).append(run)
    return runs


def find_runs(file: str) -> Iterator[tuple[str, Run]]:
    """Yield each run of rows in a file of the table of events, with its trace."""
    begins, trace, line, last, row = 0, None, 0, 0, 0
    parquet = open_parquet(file, ["trace"])
    for group in range(parquet.num_row_groups):
        for batch in parquet.read_row_group(group, ["trace", "line"], use_threads=False).to_batches():
            for start in run_starts(batch):
                name, number = batch["trace"][start].as_py(), batch["line"][start].as_py()
                if start > 0 or name != trace or number <= last:
                    if trace is not None:
                        yield trace, Run(file, begins, row + start - begins, line)
                    begins, trace, line = row + start, name, number
            row += batch.num_rows
            last = batch["line"][-1].as_py()
    if trace is not None:
        yield trace, Run(file, begins, row - begins, line)


def run_starts(batch: pa.RecordBatch) -> Iterator[int]:
    """Yield the rows of a batch at which another trace begins, or lines do not ascend; the first row is one. Traces are
    encoded as a dictionary."""
    if batch.num_rows == 0:
        return
    trace, line = batch["trace"].indices, batch["line"]
    is_other = pc.not_equal(trace[1:], trace[:-1])
    is_back = pc.less_equal(line[1:], line[:-1])
    yield 0
    for each in pc.indices_nonzero(pc.or_(is_other, is_back)).to_pylist():
        yield each + 1


class RunReader:
    """Reads runs of rows, and keeps the row group that it has read last: short runs that follow each other share it.
    The columns `encoded` are read as dictionaries."""

    def __init__(self, columns: Sequence[str], encoded: Sequence[str] = ()) -> None:
        self.columns = list(columns)
        self.encoded = list(encoded)
        self.file = ""
        self.first_rows: list[int] = []
        """The first row of each row group of the file, and the row after the last."""
        self.group = -1
        self.table: pa.Table | None = None
        self.parquet: Any = None

    def batches(self, run: Run) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a run."""
        if run.file != self.file:
            self.open_file(run.file)
        end = run.row + run.rows
        for group, (first, after) in enumerate(pairwise(self.first_rows)):
            if first < end and run.row < after:
                begin = max(run.row, first)
                rows = self.read_group(group).slice(begin - first, min(end, after) - begin)
                yield from rows.to_batches()

    def open_file(self, file: str) -> None:
        """Go on with another file."""
        self.file, self.group, self.table = file, -1, None
        self.parquet = open_parquet(file, self.encoded)
        metadata = self.parquet.metadata
        counts = (metadata.row_group(each).num_rows for each in range(metadata.num_row_groups))
        self.first_rows = list(accumulate(counts, initial=0))

    def read_group(self, group: int) -> pa.Table:
        """The rows of a row group of the present file."""
        if group != self.group or self.table is None:
            self.table = self.parquet.read_row_group(group, self.columns, use_threads=False)
            self.group = group
        return self.table


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace file: numbers of events and lines, the first line after which events are missing, whether it is judged as
    a whole, events by bucket, its recording and part, and the last line that repeats the part before."""

    trace: str
    events: int
    lines: int
    flawed: int | None
    marked: bool
    sizes: Mapping[int, int]
    recording: str = ""
    part: int = 0
    continued: int | None = None


RecordingFiles: TypeAlias = Sequence[TraceFile]
"""The files of one trace, in order."""


def group_recordings(files: Iterable[TraceFile]) -> list[RecordingFiles]:
    """The files of each trace. A part after which events are missing is the last of its trace."""
    found: list[list[TraceFile]] = []
    for file in sorted(files, key=lambda each: (each.recording, each.part, each.trace)):
        before = found[-1][-1] if found else file
        is_next = is_next_part((before.recording, before.part), (file.recording, file.part))
        if not found or not is_next or before.flawed is not None or file.continued is None:
            found.append([])
        found[-1].append(file)
    return list(found)


def line_offsets(whole: RecordingFiles) -> list[tuple[TraceFile, int, int]]:
    """Each file with the number of its last repeated line, and the number of new lines in the files before it: a part
    begins by repeating the requests in flight."""
    found: list[tuple[TraceFile, int, int]] = []
    before = 0
    for number, file in enumerate(whole):
        begins = (file.continued or 0) if number else 0
        found.append((file, begins, before))
        before += file.lines - begins
    return found


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
    (trace, event), now = parse_finding(finding), corpus.snapshot()
    recording, header = find_recording(now, trace)
    lines = [line for each, begins, _ in line_offsets(recording) for line in intact_lines(now, each.trace, begins)]
    if event is not None and not any(decode_event(line).sequence == event for line in lines):
        raise PipelineError(f"{trace} has no event {event} in {corpus.folder}")
    with output.open("xb") as out:
        out.writelines([header, *lines])
    return len(lines)


def read_trace_files(corpus: Corpus) -> Iterator[tuple[TraceFile, bytes]]:
    """Yield the trace files of a corpus, without their buckets, each with its header line."""
    for name in corpus.files(TRACES):
        for row in open_parquet(name).read(SCHEMAS[TRACES].names).to_pylist():
            counts = (row["events"], row["lines"], row["flawed"], row["marked"])
            yield TraceFile(row["trace"], *counts, {}, row["recording"], row["part"], row["continued"]), row["header"]


def find_recording(corpus: Corpus, trace: str) -> tuple[RecordingFiles, bytes]:
    """The files of the trace that a file belongs to, and its header line. Raises `PipelineError`."""
    headers: dict[str, bytes] = {}
    files: list[TraceFile] = []
    for file, header in read_trace_files(corpus):
        headers[file.trace] = header
        files.append(file)
    trace = find_name(trace, headers)
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
