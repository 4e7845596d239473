"""A held-out fault: edits to functions of the bundled coordinator, and the witness that shows it."""

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from fencepost.conformance.classic.zoo.bugs.environments import PLAIN, Environment
from fencepost.conformance.run.context import ScenarioFunction
from fencepost.conformance.subject import Scenario
from fencepost.conformance.zoo.fault import Fault, Patch, Side

_PACKAGE = "fencepost.adapters.classic"


class StaleEditError(Exception):
    """The bundled coordinator no longer has the text that an edit replaces; the message says where."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of a method's source text and what stands in its place. `method` is "module.Class.method"."""

    method: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Witness:
    """The scenario that shows a fault of some kind. `not_blamed` says why the judge could reject no trace of it when it
    was written; "" if it rejects this one."""

    kind: str
    scenario: Scenario
    not_blamed: str = ""


@dataclass(slots=True)
class HeldoutFamily:
    """The faults of one kind, in their order in the file, with the witness of each by its id."""

    kind: str
    faults: list[Fault[Environment]] = field(default_factory=list)
    witnesses: dict[str, Witness] = field(default_factory=dict)

    def add(
        self, *breaks: str, source: str, edits: Sequence[Edit], not_blamed: str = ""
    ) -> Callable[[ScenarioFunction], ScenarioFunction]:
        """Register a function as the witness of a fault, which has its name and the first paragraph of its docstring
        as its sentence."""

        def register(play: ScenarioFunction) -> ScenarioFunction:
            id = play.__name__.replace("_", "-")
            sentence = " ".join((inspect.getdoc(play) or "").split("\n\n")[0].split())
            self.faults.append(edited_coordinator(id, breaks, source, edits, sentence))
            self.witnesses[id] = Witness(self.kind, Scenario(id, (), play), not_blamed)
            return play

        return register


def edited_coordinator(
    id: str, breaks: Sequence[str], source: str, edits: Sequence[Edit], sentence: str = ""
) -> Fault[Environment]:
    """A fault of the bundled coordinator that some edits make."""

    def apply(patch: Patch) -> None:
        for edit in edits:
            owner, name = find_method(edit.method)
            patch.replace(owner, name, edited_method(owner, name, edit))

    return Fault(id, Side.COORDINATOR, tuple(breaks), source, apply, PLAIN, sentence)


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
