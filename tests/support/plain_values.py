"""Requests, responses and other values of the core from plain strings, bytes and numbers."""

from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")


def build(kind: Callable[..., Value], *values: Any, **fields: Any) -> Value:
    """The value of this kind with these fields, whose sorts mypy does not look at."""
    return kind(*values, **fields)
