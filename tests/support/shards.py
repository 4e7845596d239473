"""The pipeline's shards without Spark: the lines of each, and the findings in them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from fencepost.model.errors import COORDINATOR_NOT_READY
from fencepost.traces.files.rotating_writer import recording_part_of
from fencepost.traces.pipeline.corpus import Corpus
from fencepost.traces.pipeline.ingest import bucket_sizes
from fencepost.traces.pipeline.judge_corpus import (
    UNREADABLE,
    FoundInShard,
    ShardAnalysis,
    judge_shard,
)
from fencepost.traces.pipeline.rows import (
    LOOKUPS_SHARD,
    REPEATED_LINE,
    SHARED_BUCKET,
    WHOLE_TRACE,
    BadLine,
    Row,
    RowReader,
    is_unrelated,
)
from fencepost.traces.pipeline.shard_plan import Shard, shards_of
from fencepost.traces.pipeline.trace_rows import TraceFile, group_recordings, line_offsets


def file_of(corpus: Corpus, reader: RowReader) -> TraceFile:
    """What a corpus knows of a trace file that was read."""
    assert reader.header is not None
    sizes = bucket_sizes(reader, corpus)
    counts = (reader.trace, reader.events, reader.lines, reader.flawed, reader.marked, dict(sizes))
    return TraceFile(*counts, *recording_part_of(reader.header), reader.continued)


def is_in_shard(row: Row, shard: Shard, corpus: Corpus) -> bool:
    """Whether the event is one of this shard."""
    bucket = SHARED_BUCKET if row.group is None else corpus.bucket_of(row.group)
    if shard.bucket == WHOLE_TRACE or row.is_unrelated:
        return shard.bucket == WHOLE_TRACE and not (row.is_unrelated and shard.unread)
    if bucket in shard.buckets:
        return True
    if shard.bucket == LOOKUPS_SHARD:
        return row.kind == "response" and row.error in COORDINATOR_NOT_READY
    return bucket == SHARED_BUCKET and not is_unrelated(row.kind, row.api)


def findings_in(corpus: Corpus, paths: Sequence[Path], split: int, analyze: ShardAnalysis) -> Iterator[FoundInShard]:
    """Yield the findings in all shards of the traces in some files."""
    readers = {str(path): RowReader(str(path)) for path in paths}
    rows: dict[str, list[Row]] = {}
    for name, reader in readers.items():
        rows[name], bad = [], []
        for row in reader.rows():
            if isinstance(row, BadLine):
                bad += [row] if row.reason != REPEATED_LINE else []
            elif row.intact:
                rows[name].append(row)
        if bad:
            first = min(bad, key=lambda each: each.line)
            value = {"line": first.line, "reason": first.reason, "files": int(reader.header is None)}
            yield FoundInShard(
                name, WHOLE_TRACE, UNREADABLE, None, None, None, json.dumps({**value, "malformed": False})
            )
    for whole in group_recordings(file_of(corpus, each) for each in readers.values() if each.header is not None):
        for shard in shards_of(whole, split):
            mine = [
                (row.line - begins + before, row.text, is_own(row, shard, corpus))
                for file, begins, before in line_offsets(whole)
                for row in rows[file.trace]
                if row.line > begins and is_in_shard(row, shard, corpus)
            ]
            header = (1, readers[shard.trace].header_line, False)
            found = judge_shard(shard, corpus.buckets, [header, *mine], analyze)
            yield from (row for row in found if isinstance(row, FoundInShard))


def is_own(row: Row, shard: Shard, corpus: Corpus) -> bool:
    """Whether the event is in this shard alone."""
    bucket = SHARED_BUCKET if row.group is None else corpus.bucket_of(row.group)
    return shard.bucket == WHOLE_TRACE or bucket in shard.buckets
