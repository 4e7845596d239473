"""Copies of corpora: one of an older format, or in the other form of the log, becomes a new one."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from fencepost.traces.message_fields import encodable_text
from fencepost.traces.pipeline.corpus import (
    CORPUS_FORMAT,
    Corpus,
    Counts,
    InputRow,
    read_mark,
)
from fencepost.traces.pipeline.corpus_log import MANIFEST
from fencepost.traces.pipeline.errors import PipelineError
from fencepost.traces.pipeline.file_systems import (
    Location,
    find_files,
    join_location,
    read_text,
    resolve_location,
    write_text,
)
from fencepost.traces.pipeline.rewriting import group_files, rewrite_files
from fencepost.traces.pipeline.schema import INPUTS, QUARANTINE, TABLES, TRACES, TableWriter, table_of

OLD_FORMATS = (3, 4)
"""Formats with the day and the bucket of an event in the path of its file, and the inputs in the manifest."""
CAMPAIGN_FILE = "campaign.json"


def migrate(folder: Location, to: Location, format: str | None) -> int:
    """Copy the corpus in `folder`, of this format or an older one, into a new one, and return its number of inputs.

    `format` is the form of the new log. Raises `PipelineError`.
    """
    folder, to = resolve_location(folder), resolve_location(to)
    mark = read_mark(folder)
    version = mark["fencepost_corpus"]
    if version not in (*OLD_FORMATS, CORPUS_FORMAT):
        raise PipelineError(
            f"{folder} has corpus format {version}; formats {OLD_FORMATS} and {CORPUS_FORMAT} are known"
        )
    if to.exists() if isinstance(to, Path) else find_files(to):
        raise PipelineError(f"{to} already exists: give a new folder")
    root: Location
    if version in OLD_FORMATS and isinstance(folder, Path):
        root, files = folder, old_files(folder)
        inputs = old_inputs(folder, files)
    else:
        source = Corpus.open(folder).snapshot()
        assert source.committed is not None
        root, files, inputs = source.data, source.committed.files, list(source.input_rows())
    corpus = Corpus.create(to, mark["buckets"], format)
    with corpus.write() as writer:
        added: dict[str, int] = {}
        for table in TABLES:
            if table != INPUTS:
                for group in group_files(table, files):
                    added |= rewrite_files(root, corpus.data, writer.id, table, group.names)
        with TableWriter(corpus.data, writer.id) as tables:
            for row in inputs:
                tables.add_row(INPUTS, row)
        writer.append([row.input for row in inputs], added | tables.files)
    inputs = [row for row in inputs if not row.is_position]
    with suppress(FileNotFoundError):
        plan = read_text(join_location(folder, CAMPAIGN_FILE))
        write_text(join_location(corpus.folder, CAMPAIGN_FILE), plan)
    return len(inputs)


def old_manifests(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the batches of an older corpus."""
    for path in sorted((folder / MANIFEST).glob("*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def old_files(folder: Path) -> Mapping[str, int]:
    """The files of an older corpus with their sizes in bytes. Raises `PipelineError` if one is missing."""
    try:
        return {name: (folder / name).stat().st_size for batch in old_manifests(folder) for name in batch["files"]}
    except FileNotFoundError as missing:
        raise PipelineError(f"{missing.filename}, which {folder} names, is not there: ingest its inputs anew") from None


def old_inputs(folder: Path, files: Mapping[str, int]) -> list[InputRow]:
    """The inputs of an older corpus, with the counts of their lines and the reports of a campaign."""
    headers: Counter[str] = Counter()
    events: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    for name in files:
        if table_of(name) == TRACES:
            for row in pq.ParquetFile(folder / name).read(["trace", "events"]).to_pylist():
                headers[row["trace"]] += 1
                events[row["trace"]] += row["events"]
        elif table_of(name) == QUARANTINE:
            for row in pq.ParquetFile(folder / name).read(["trace", "lines"]).to_pylist():
                bad[row["trace"]] += row["lines"]
    named = [each for batch in old_manifests(folder) for each in batch["inputs"]]
    totals = [sum_by_input(each, [encodable_text(row["path"]) for row in named]) for each in (headers, events, bad)]
    found = []
    for row in named:
        name = encodable_text(row["path"])
        numbers = [each[name] for each in totals]
        report = folder / "reports" / f"{name.removeprefix('seed ')}.json"
        text = report.read_text(encoding="utf-8") if name.startswith("seed ") and report.exists() else None
        counts = Counts(sum(numbers), *numbers)
        found.append(InputRow.from_counts(name, row["size"], row["changed"], counts, text))
    return found


def sum_by_input(by_trace: Mapping[str, int], inputs: list[str]) -> Counter[str]:
    """The numbers of traces, added up by input: the trace itself, or the seed that its name begins with."""
    known = set(inputs)
    found: Counter[str] = Counter()
    for trace, number in by_trace.items():
        found[trace if trace in known else trace.partition("/")[0]] += number
    return found
