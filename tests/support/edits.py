"""Functions with some pieces of their source text replaced: mutants by hand, where one word is wrong."""

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from fencepost.model.classic.proofs.proof_events import TWINS


class StaleEditError(Exception):
    """A function no longer has the text that an edit replaces; the message says where."""


def edited(function: Callable[..., Any], *edits: tuple[str, str]) -> FunctionType:
    """The function with each piece of its text, which is there once, replaced by another. Raises `StaleEditError`."""
    source = textwrap.dedent(inspect.getsource(function))
    for old, new in edits:
        if source.count(old) != 1:
            raise StaleEditError(f"{function.__qualname__}: {old!r} is there {source.count(old)} times, not once")
        source = source.replace(old, new)
    scope: dict[str, Any] = {}
    exec(compile(source, f"<edited {function.__qualname__}>", "exec"), function.__globals__, scope)
    made: FunctionType = scope[function.__name__]
    return made


@contextmanager
def mutant(function: Callable[..., Any], before: str, after: str) -> Iterator[None]:
    """While this lasts, the function has `after` in place of the one `before` in its source, whoever imported it, and
    whoever reads the source of its module for a proof."""
    assert isinstance(function, FunctionType)
    original, scope, shipped = function.__code__, function.__globals__, inspect.getsource(function)
    changed = edited(function, (before, after)).__code__
    source = scope.get("__source__") or Path(scope["__file__"]).read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(scope, "__source__", source.replace(shipped, shipped.replace(before, after), 1))
        function.__code__ = changed
        TWINS.forget()
        try:
            yield
        finally:
            function.__code__ = original
            TWINS.forget()
