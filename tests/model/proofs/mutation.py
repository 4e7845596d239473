"""Mutants of shipped functions, made from outside by rewriting their source."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any


@contextmanager
def mutant(function: Callable[..., Any], before: str, after: str) -> Iterator[None]:
    """While this lasts, the function has `after` in place of the one `before` in its source."""
    assert isinstance(function, FunctionType)
    source = inspect.getsource(function)
    assert source.count(before) == 1, (function.__name__, before)
    scope: dict[str, Any] = dict(function.__globals__)
    exec(source.replace(before, after), scope)
    original = function.__code__
    function.__code__ = scope[function.__name__].__code__
    try:
        yield
    finally:
        function.__code__ = original
