"""Rows as Arrow has them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa


def to_record_batches(rows: Iterable[Sequence[Any]], schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    """The rows, so many at a time; nothing if there are none."""
    source = iter(rows)
    while held := list(islice(source, size)):
        columns = zip(*held, strict=True)
        arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
