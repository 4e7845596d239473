"""A held-out fault: edits to functions of the bundled coordinator, and the witness that shows it."""

import inspect
import textwrap
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tests.acceptance.heldout_faults.play import Play

_PACKAGE = "fencepost.adapters.bundled.classic"

WitnessFunction = Callable[[Play], Awaitable[None]]


class StaleEditError(Exception):
    """The bundled coordinator no longer has the text that an edit replaces; the message says where."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of a method's source text and what stands in its place. `method` is "module.Class.method"."""

    method: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a coordinator.

    `requirements` are the ids of those that forbid it, and `source` is where it was shipped, or "plausible".
    `not_blamed` says why the judge could reject no trace of it when it was written; "" if it rejects the witness's.
    """

    name: str
    kind: str
    sentence: str
    requirements: tuple[str, ...]
    source: str
    edits: tuple[Edit, ...]
    witness: WitnessFunction
    not_blamed: str = ""

    @contextmanager
    def injected(self) -> Iterator[None]:
        """Have the bundled coordinator of this process carry the fault. Raises `StaleEditError`."""
        originals: list[tuple[type, str, Any]] = []
        try:
            for edit in self.edits:
                owner, name = find_method(edit.method)
                originals.append((owner, name, vars(owner)[name]))
                setattr(owner, name, edited_method(owner, name, edit))
            yield
        finally:
            for owner, name, original in reversed(originals):
                setattr(owner, name, original)


class FaultFamily:
    """The faults of one kind, in their order in the file."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._faults: list[Fault] = []

    def add(
        self, *requirements: str, source: str, edits: Sequence[Edit], not_blamed: str = ""
    ) -> Callable[[WitnessFunction], WitnessFunction]:
        """Register a function as the witness of a fault, which has its name and the first paragraph of its docstring
        as its sentence."""

        def register(witness: WitnessFunction) -> WitnessFunction:
            name = witness.__name__.replace("_", "-")
            sentence = " ".join((inspect.getdoc(witness) or "").split("\n\n")[0].split())
            fault = Fault(name, self.kind, sentence, requirements, source, tuple(edits), witness, not_blamed)
            self._faults.append(fault)
            return witness

        return register

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The registered faults."""
        return tuple(self._faults)


def find_method(path: str) -> tuple[type, str]:
    """The class and the name of the method "module.Class.method". Raises `StaleEditError`."""
    module, class_name, name = path.split(".")
    owner = getattr(import_module(f"{_PACKAGE}.{module}"), class_name, None)
    if not isinstance(owner, type) or name not in vars(owner):
        raise StaleEditError(f"{path}: the bundled coordinator has no such method; edit what took its place")
    return owner, name


def edited_method(owner: type, name: str, edit: Edit) -> Any:
    """The method as it is now, edits before this one included, with one more. Raises `StaleEditError`."""
    present = vars(owner)[name]
    function: Any = present.fget if isinstance(present, property) else present
    source: str = getattr(function, "edited_source", None) or textwrap.dedent(inspect.getsource(function))
    if source.count(edit.old) != 1:
        raise StaleEditError(f"{edit.method}: {edit.old!r} is there {source.count(edit.old)} times, not once")
    source = source.replace(edit.old, edit.new)
    scope: dict[str, Any] = {}
    exec(compile(source, f"<fault in {edit.method}>", "exec"), function.__globals__, scope)
    edited: Any = scope[name]
    inner: Any = edited.fget if isinstance(edited, property) else edited
    inner.edited_source = source
    return edited
