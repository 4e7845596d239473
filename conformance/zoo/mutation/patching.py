"""Replaces named functions for the duration of a context."""

from contextlib import ExitStack
from types import TracebackType
from typing import Any


class Patch:
    """A context in which attributes of classes, objects and modules are replaced; its end restores them.

    It affects the whole process: faulty code runs in a process of its own.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> "Patch":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def replace(self, owner: object, name: str, value: Any) -> None:
        """Give an attribute another value. Raises `AttributeError` if the owner does not have it."""
        own = vars(owner) if hasattr(owner, "__dict__") else {}
        if name in own:
            self._stack.callback(setattr, owner, name, own[name])
        else:
            getattr(owner, name)
            self._stack.callback(delattr, owner, name)
        setattr(owner, name, value)
