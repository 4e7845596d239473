"""Garbage collection while many values are made."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

VALUES_BETWEEN_COLLECTIONS = 50_000


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Look for cycles rarely meanwhile: a judge makes millions of values, and hardly a cycle."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(VALUES_BETWEEN_COLLECTIONS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
