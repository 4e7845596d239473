"""State diagrams of what a search has seen: the phases of a group, the states of a member, and the rules between them.

Markdown with Mermaid diagrams.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from fencepost.model.classic.core.state import Phase
from fencepost.model.classic.explore.state_layout import (
    CoordinatorState,
    ProcessState,
)
from fencepost.model.classic.member.member import MemberState
from fencepost.model.explore.transition_system import Value
from fencepost.model.explore.transition_tables import TransitionTables


@dataclass(frozen=True, slots=True, order=True)
class Arrow:
    """A rule leads from one phase of a group, or state of a member, to another, or stays in it."""

    before: IntEnum
    after: IntEnum
    rule: str


def searched_arrows(tables: TransitionTables) -> set[Arrow]:
    """The arrows of everything that a search has learned, cut moves left out."""
    found: set[Arrow] = set()
    for table in tables.actions:
        column = table.action.columns[0]
        for key, moves in table.transitions.items():
            before = tables.known_values(column)[key[0]]
            for move, _ in moves:
                if move.rule and not move.cut:
                    after = dict(move.writes).get(column, before)
                    found.add(Arrow(state_of(before), state_of(after), move.rule))
    return found


def state_of(value: Value) -> IntEnum:
    """The phase of the group, or the state of the member."""
    match value:
        case CoordinatorState(group=group):
            return group.phase
        case ProcessState(member=member):
            return member.state
    raise AssertionError("a site reads the coordinator or a process first")


def render_search(found: set[Arrow]) -> str:
    """What a search has seen as a page of Markdown: the phases of the group and the states of its members."""
    kinds = ((Phase, Phase.EMPTY, "The group"), (MemberState, MemberState.UNJOINED, "A member"))
    lines = ["# As seen in the search"]
    for kind, first, name in kinds:
        ours = {arrow for arrow in found if isinstance(arrow.before, kind)}
        lines += ["", f"{name}:", "", *mermaid_diagram(ours, kind, first)]
    return "\n".join(lines) + "\n"


def mermaid_diagram(found: Iterable[Arrow], states: type[IntEnum], first: IntEnum) -> Iterator[str]:
    """The arrows between different states as a Mermaid diagram."""
    together: dict[tuple[IntEnum, IntEnum], list[str]] = {}
    for arrow in sorted(found):
        if arrow.before != arrow.after:
            together.setdefault((arrow.before, arrow.after), []).append(arrow.rule)
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {state_title(first)}"
    for state in states:
        for after in states:
            names = together.get((state, after))
            if names:
                yield f"    {state_title(state)} --> {state_title(after)}: {'<br/>'.join(names)}"
    yield "```"


def state_title(state: IntEnum) -> str:
    """The name of a phase or state, as Kafka writes it."""
    return "".join(word.title() for word in state.name.split("_"))
