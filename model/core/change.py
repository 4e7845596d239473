"""A frozen value with some of its fields changed."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

Value = TypeVar("Value")


@cache
def layout(kind: type) -> tuple[Callable[[Any], tuple[Any, ...]], Mapping[str, int]]:
    """How to read all fields of a dataclass at once, and the place of each. It has at least two fields."""
    names = [each.name for each in fields(kind)]
    return attrgetter(*names), {name: place for place, name in enumerate(names)}


def alter(value: Value, **changes: Any) -> Value:
    """The dataclass value with these fields changed: `dataclasses.replace`, several times as fast.

    The judge takes a handful of these for every event of a trace.
    """
    kind: Any = type(value)
    read, places = layout(kind)
    parts = list(read(value))
    for name, each in changes.items():
        parts[places[name]] = each
    result: Value = kind(*parts)
    return result
