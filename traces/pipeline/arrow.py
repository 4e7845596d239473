"""Conversion of rows to Arrow record batches."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa


def to_record_batches(rows: Iterable[Sequence[Any]], schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows as record batches of at most `size` rows; no batch if there are no rows."""
    source = iter(rows)
    while held := list(islice(source, size)):
        columns = zip(*held, strict=True)
        arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
