"""The page for readers, model/PHASES.md: the phases of a group, the states of a member, and the rules between them.

Which rules there are, and when each applies, is read from the rule table; which phases a rule leads from and to is
asked of the shipped handlers. Markdown with Mermaid diagrams.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import IntEnum

from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.core.state import JoinRequest, Phase, Protocol
from fencepost.model.classic.explore.coordinator_inputs import Universe, joinings
from fencepost.model.classic.explore.coordinator_tour import coordinator_machine
from fencepost.model.classic.explore.member_tour import member_machine
from fencepost.model.classic.explore.state_diagram import Arrow, mermaid_diagram, searched_arrows, state_title
from fencepost.model.classic.explore.state_layout import (
    COMMIT,
    COORDINATOR,
    REQUEST,
    Bounds,
    ModelConfig,
    column_of,
    untimed_member,
)
from fencepost.model.classic.explore.symmetry import ReducedGroupModel
from fencepost.model.classic.member.member import NO_GENERATION, MemberRequest, MemberState, PartitionCommit
from fencepost.model.explore.engine import explore_system
from fencepost.model.explore.tours import Input, Machine, State, transition_graph
from fencepost.model.explore.transition_tables import TransitionTables
from fencepost.model.groups.messages import CommitRequest
from fencepost.model.sorts import InstanceId, ProtocolName

PHASE_FAMILIES = ("join", "sync", "heartbeat", "leave", "commit", "timer")
"""The families of rules that the phases are about."""
DOCUMENTED_MODEL = (ModelConfig((untimed_member(), untimed_member(instance="one"))), Bounds(2, 2, 2, 2))
"""What is searched for the picture in the documentation; then every request is tried in every state of the group."""
DOCUMENTED_UNIVERSE = Universe(ids=2, generations=1, joinings=joinings(2), odd=True)
"""What the coordinator is asked besides: members that change their metadata, and requests that make no sense."""


def documented_arrows() -> tuple[set[Arrow], set[Arrow]]:
    """The arrows of the group and of a member for the documentation, for every request in every state."""
    world = ReducedGroupModel(*DOCUMENTED_MODEL)
    tables = explore_system(world.system())[0].tables
    requests = [*request_variants(tables), OUTSIDER_COMMIT]
    group = {arrow for arrow in searched_arrows(tables) if isinstance(arrow.before, Phase)}
    group |= tour_arrows(coordinator_machine(DOCUMENTED_UNIVERSE), lambda local: local.group.phase)
    for coordinator in tables.known_values(COORDINATOR)[1:]:
        for request in requests:
            for judged in world.possible_steps(coordinator, 0, request):
                group.add(Arrow(coordinator.group.phase, judged.after.group.phase, judged.step.rule))
    member: set[Arrow] = set()
    for cooperative in (False, True):
        member |= tour_arrows(member_machine(untimed_member(cooperative)), lambda member: member.state)
    return group, member


def tour_arrows(machine: Machine[State, Input], state_in: Callable[[State], IntEnum]) -> set[Arrow]:
    """The arrows of a machine under every input."""
    graph, _ = transition_graph(machine)
    found: set[Arrow] = set()
    states = [state_in(graph.nodes[number]["state"]) for number in range(len(graph))]
    for before, after, data in graph.edges(data=True):
        found.add(Arrow(states[before], states[after], data["step"].rule))
    return found


OUTSIDER_COMMIT = PartitionCommit(CommitRequest(0, None, None, NO_GENERATION), (True,))
"""A commit of somebody who is not in the group."""


def request_variants(tables: TransitionTables) -> Iterator[MemberRequest]:
    """Every request that a search has met; JoinGroup also in an old version, of a foreign protocol or instance."""
    for column in (column_of(0, REQUEST), column_of(0, COMMIT)):
        for request in tables.known_values(column)[1:]:
            yield request
            if isinstance(request, JoinRequest):
                yield replace(request, requires_id=False)
                yield replace(request, protocols=(Protocol(ProtocolName("foreign"), request.protocols[0].metadata),))
                yield from (replace(request, instance=InstanceId(name)) for name in ("one", "another"))


def render_page(group: set[Arrow], member: set[Arrow]) -> str:
    """The picture as a page of Markdown."""
    drawn = sorted({arrow.rule for arrow in group})
    others = [name for name in RULES if name.split(".")[0] in PHASE_FAMILIES and name not in drawn]
    lines = [
        "# The life of a group",
        "",
        "Made from the rule table (`model/rules`) and the shipped handlers, in groups of up to two members; a test",
        "compares. An arrow is labelled with the rules that take it; what leaves a group in its phase is in the table.",
        "",
        *mermaid_diagram(group, Phase, Phase.EMPTY),
        "",
        "| rule | applies when | leads | requirements |",
        "|---|---|---|---|",
        *(rule_row(name, group) for name in RULES if name in drawn),
        "",
        "Answered before the phase matters, or under settings that the search behind this page does not have:",
        "",
        *(f"- `{name}`: {RULES[name].guard}" for name in others),
        "",
        "# The life of a member",
        "",
        "What the core of a member does, whatever it hears; rules that leave it in its state are left out.",
        "",
        *mermaid_diagram(member, MemberState, MemberState.UNJOINED),
    ]
    return "\n".join(lines) + "\n"


def rule_row(name: str, found: set[Arrow]) -> str:
    """The line of a rule in the table."""
    rule = RULES[name]
    leads: dict[IntEnum, list[IntEnum]] = {}
    for arrow in sorted(found):
        if arrow.rule == name:
            leads.setdefault(arrow.before, []).append(arrow.after)
    stays = [state_title(before) for before, after in leads.items() if after == [before]]
    told = [f"stays in {', '.join(stays)}"] if stays else []
    for before, reached in leads.items():
        if reached != [before]:
            told.append(
                f"{state_title(before)} → "
                f"{', '.join('stays' if one == before else state_title(one) for one in reached)}"
            )
    return f"| `{name}` | {rule.guard} | {'; '.join(told)} | {' '.join(rule.requirements)} |"
