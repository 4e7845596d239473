"""A readable picture of the state machine: the phases of a group and the states of a member, and what leads where.

Which rules there are, and when each applies, is read from the rule table; which phases a rule leads from and to is
asked of the shipped handlers. Markdown with Mermaid diagrams.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from fencepost.model.classic.core.state import CommitRequest, JoinRequest, Phase, Protocol
from fencepost.model.classic.member.member import NO_GENERATION, MemberRequest, MemberState, PartitionCommit
from fencepost.model.classic.rules import RULES
from fencepost.model.explore.classic.coordinator_inputs import Universe, joinings
from fencepost.model.explore.classic.coordinator_tour import coordinator_machine
from fencepost.model.explore.classic.group_search import explore
from fencepost.model.explore.classic.member_tour import member_machine
from fencepost.model.explore.classic.reductions import ReducedWorld
from fencepost.model.explore.classic.state_layout import (
    COMMIT,
    COORDINATOR,
    REQUEST,
    Bounds,
    Coordinator,
    Process,
    Setting,
    column_of,
    plain,
)
from fencepost.model.explore.tours import Input, Machine, State, transition_graph
from fencepost.model.explore.transition_system import Value
from fencepost.model.explore.transition_tables import Tables

OF_THE_PHASES = ("join", "sync", "heartbeat", "leave", "commit", "timer")
"""The families of rules that the phases are about."""
SEARCHED = (Setting((plain(), plain(instance="one"))), Bounds(2, 2, 2, 2))
"""What is searched for the picture in the documentation; then every request is tried in every state of the group."""
TOURED = Universe(ids=2, generations=1, joinings=joinings(2), odd=True)
"""What the coordinator is asked besides: members that change their metadata, and requests that make no sense."""


@dataclass(frozen=True, slots=True, order=True)
class Arrow:
    """A rule leads from one phase to another, or stays in it; the same for the states of a member."""

    before: IntEnum
    after: IntEnum
    rule: str


def arrows(tables: Tables) -> set[Arrow]:
    """The arrows of everything that a search has learned, cut moves left out."""
    found: set[Arrow] = set()
    for table in tables.sites:
        column = table.site.columns[0]
        for key, moves in table.moves.items():
            before = tables.interned(column)[key[0]]
            for move, _ in moves:
                if move.rule and not move.cut:
                    after = dict(move.writes).get(column, before)
                    found.add(Arrow(state_of(before), state_of(after), move.rule))
    return found


def state_of(value: Value) -> IntEnum:
    """The phase of the group, or the state of the member."""
    match value:
        case Coordinator(group=group):
            return group.phase
        case Process(member=member):
            return member.state
    raise AssertionError("a site reads the coordinator or a process first")


def standing() -> tuple[set[Arrow], set[Arrow]]:
    """The arrows of the group and of a member for the documentation: under whatever is asked, in whatever state."""
    world = ReducedWorld(*SEARCHED)
    tables = explore(world.system())[0].tables
    requests = [*varied(tables), CLAIMING_NOTHING]
    group = {arrow for arrow in arrows(tables) if isinstance(arrow.before, Phase)}
    group |= toured(coordinator_machine(TOURED), lambda local: local.group.phase)
    for coordinator in tables.interned(COORDINATOR)[1:]:
        for request in requests:
            for step, after in world.served(coordinator, 0, request):
                group.add(Arrow(coordinator.group.phase, after.group.phase, step.rule))
    member: set[Arrow] = set()
    for cooperative in (False, True):
        member |= toured(member_machine(plain(cooperative)), lambda member: member.state)
    return group, member


def toured(machine: Machine[State, Input], state_in: Callable[[State], IntEnum]) -> set[Arrow]:
    """The arrows of a machine under every input."""
    graph, _ = transition_graph(machine)
    found: set[Arrow] = set()
    states = [state_in(graph.nodes[number]["state"]) for number in range(len(graph))]
    for before, after, data in graph.edges(data=True):
        found.add(Arrow(states[before], states[after], data["step"].rule))
    return found


CLAIMING_NOTHING = PartitionCommit(CommitRequest(0, None, None, NO_GENERATION), (True,))
"""A commit of somebody who is not in the group."""


def varied(tables: Tables) -> Iterator[MemberRequest]:
    """Every request that a search has met; JoinGroup also in an old version, of a foreign protocol or instance."""
    for column in (column_of(0, REQUEST), column_of(0, COMMIT)):
        for request in tables.interned(column)[1:]:
            yield request
            if isinstance(request, JoinRequest):
                yield replace(request, requires_id=False)
                yield replace(request, protocols=(Protocol("foreign", request.protocols[0].metadata),))
                yield from (replace(request, instance=name) for name in ("one", "another"))


def document(group: set[Arrow], member: set[Arrow]) -> str:
    """The picture as a page of Markdown."""
    drawn = sorted({arrow.rule for arrow in group})
    others = [name for name in RULES if name.split(".")[0] in OF_THE_PHASES and name not in drawn]
    lines = [
        "# The life of a group",
        "",
        "Made from the rule table (`model/rules`) and the shipped handlers, in groups of up to two members; a test",
        "compares. An arrow is labelled with the rules that take it; what leaves a group in its phase is in the table.",
        "",
        *diagram(group, Phase, Phase.EMPTY),
        "",
        "| rule | applies when | leads | requirements |",
        "|---|---|---|---|",
        *(row(name, group) for name in RULES if name in drawn),
        "",
        "Answered before the phase matters, or under settings that the search behind this page does not have:",
        "",
        *(f"- `{name}`: {RULES[name].guard}" for name in others),
        "",
        "# The life of a member",
        "",
        "What the core of a member does, whatever it hears; rules that leave it in its state are left out.",
        "",
        *diagram(member, MemberState, MemberState.UNJOINED),
    ]
    return "\n".join(lines) + "\n"


def picture(found: set[Arrow]) -> str:
    """What a search has seen as a page of Markdown: the phases of the group and the states of its members."""
    kinds = ((Phase, Phase.EMPTY, "The group"), (MemberState, MemberState.UNJOINED, "A member"))
    lines = ["# As seen in the search"]
    for kind, first, name in kinds:
        ours = {arrow for arrow in found if isinstance(arrow.before, kind)}
        lines += ["", f"{name}:", "", *diagram(ours, kind, first)]
    return "\n".join(lines) + "\n"


def diagram(found: Iterable[Arrow], states: type[IntEnum], first: IntEnum) -> Iterator[str]:
    """The arrows between different states as a Mermaid diagram."""
    together: dict[tuple[IntEnum, IntEnum], list[str]] = {}
    for arrow in sorted(found):
        if arrow.before != arrow.after:
            together.setdefault((arrow.before, arrow.after), []).append(arrow.rule)
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {title(first)}"
    for state in states:
        for after in states:
            names = together.get((state, after))
            if names:
                yield f"    {title(state)} --> {title(after)}: {'<br/>'.join(names)}"
    yield "```"


def row(name: str, found: set[Arrow]) -> str:
    """The line of a rule in the table."""
    rule = RULES[name]
    leads: dict[IntEnum, list[IntEnum]] = {}
    for arrow in sorted(found):
        if arrow.rule == name:
            leads.setdefault(arrow.before, []).append(arrow.after)
    stays = [title(before) for before, after in leads.items() if after == [before]]
    told = [f"stays in {', '.join(stays)}"] if stays else []
    for before, reached in leads.items():
        if reached != [before]:
            told.append(f"{title(before)} → {', '.join('stays' if one == before else title(one) for one in reached)}")
    return f"| `{name}` | {rule.guard} | {'; '.join(told)} | {' '.join(rule.requirements)} |"


def title(state: IntEnum) -> str:
    """The name of a phase or state, as Kafka writes it."""
    return "".join(word.title() for word in state.name.split("_"))
