"""Where the rows of each trace are in the table of events, and reading of them in the order of their lines, by Arrow.

Whoever writes a corpus writes the rows of a trace one after the other: they are a run of rows in one file. Another tool
that rewrites a table may spread them over several runs, which are merged.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.file_systems import open_parquet
from fencepost.traces.pipeline.frames import SizedFile
from fencepost.traces.pipeline.parallel import Spark, map_parallel
from fencepost.traces.pipeline.schema import EVENTS

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
    files = [SizedFile(*each) for each in corpus.sized_files(EVENTS)]
    if len(files) <= FILES_AT_ONCE:
        with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
            found = list(pool.map(lambda file: list(find_runs(file.location)), files))
    else:
        found = map_parallel(spark, files, runs_in, lambda done, total: None)
    runs: dict[str, list[Run]] = {}
    for trace, run in sorted((each for part in found for each in part), key=lambda each: each[1].line):
        runs.setdefault(trace, []).append(run)
    return runs


def runs_in(files: Sequence[SizedFile]) -> list[tuple[str, Run]]:
    """The runs in some files, each with its trace."""
    return [each for file in files for each in find_runs(file.location)]


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
