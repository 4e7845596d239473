"""A held-out fault: edits to functions of the bundled coordinator, and the witness that shows it."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.conformance.classic.zoo.bugs.environments import PLAIN, Environment
from fencepost.conformance.run.context import ScenarioFunction
from fencepost.conformance.subject import Scenario
from fencepost.conformance.zoo.fault import Fault, Patch, Side, replace_function
from tests.support.edits import edited


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of a method's source text and what stands in its place."""

    method: Callable[..., Any]
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
        for method in dict.fromkeys(edit.method for edit in edits):
            pieces = [(edit.old, edit.new) for edit in edits if edit.method is method]
            replace_function(patch, method, edited(method, *pieces))

    return Fault(id, Side.COORDINATOR, tuple(breaks), source, apply, PLAIN, sentence)
