"""Every outcome of one step: over the choices the protocol leaves open and the dialects not yet decided."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from fencepost.model.classic.coordinator.state import Outcome, World
from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import Choices, Dialect, Phase

Decisions = tuple[tuple[str, bool], ...]
"""The differences of the reference coordinators (DIV-nn) that are settled so far."""
REPLACED = "join.replace.stable"
"""How the rules begin by which a static member comes back to a stable group."""
Run = Callable[[Choices, Dialect], Outcome]


class Probe:
    """A dialect that notes which of its open questions a step asks."""

    def __init__(self, decisions: Decisions) -> None:
        self._decided = dict(decisions)
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name in self._decided:
            return self._decided[name]
        self.asked.append(name)
        return True


def in_dialects(run: Callable[[Dialect], Outcome], decisions: Decisions) -> Iterator[tuple[Outcome, Decisions]]:
    """The outcomes of a step in every dialect that fits what is decided; questions without effect stay open."""
    probe = Probe(decisions)
    outcome = run(cast(Dialect, probe))
    if not probe.asked:
        yield outcome, decisions
        return
    question = probe.asked[0]
    yes = list(in_dialects(run, decided(decisions, question, True)))
    no = list(in_dialects(run, decided(decisions, question, False)))
    if len(yes) == len(no) == 1 and yes[0][0] == no[0][0]:
        yield yes[0][0], decisions
        return
    yield from yes
    yield from no


def decided(decisions: Decisions, question: str, answer: bool) -> Decisions:
    """The decisions with one more, in one order."""
    return tuple(sorted((*decisions, (question, answer))))


def in_choices(
    run: Run, before: World, member_id: Any, leaders: Iterable[str], protocols: Iterable[str], decisions: Decisions
) -> Iterator[tuple[Outcome, Decisions]]:
    """The outcomes of a step over leaders and protocols, taken from the answers seen or else from the group."""
    leads, names = tuple(leaders), tuple(protocols)
    first = Choices(member_id, leads[0] if leads else None, names[0] if names else None)
    outcomes = list(in_dialects(lambda dialect: run(first, dialect), decisions))
    if not any(is_open(before, outcome) for outcome, _ in outcomes):
        yield from outcomes
        return
    leads = leads or tuple(slot.id for slot in members_of(outcomes))
    if any(outcome.rule.startswith(REPLACED) for outcome, _ in outcomes):
        names = ()  # That vote only decides whether there is a rebalance; what is seen may come of a later one.
    names = names or tuple(dict.fromkeys(each.name for slot in members_of(outcomes) for each in slot.protocols))
    seen: list[Outcome] = []
    for leader in leads or (None,):
        for name in names or (None,):
            choices = Choices(member_id, leader, name)
            for outcome, decided in in_dialects(lambda dialect, c=choices: run(c, dialect), decisions):  # type: ignore[misc]
                if outcome not in seen:
                    seen.append(outcome)
                    yield outcome, decided


def members_of(outcomes: Iterable[tuple[Outcome, Decisions]]) -> list[Any]:
    """The member slots after these outcomes."""
    return [
        slot
        for outcome, _ in outcomes
        if outcome.world.group is not None
        for slot in outcome.world.group.slots
        if is_member(slot)
    ]


def is_open(before: World, outcome: Outcome) -> bool:
    """The step elected a leader or a protocol, so a choice may have mattered."""
    after = outcome.world.group
    if after is None or (before.group is None and after.phase is Phase.EMPTY):
        return False
    completed = before.group is None or after.generation != before.group.generation
    return (completed and after.phase is Phase.COMPLETING) or outcome.rule.startswith(REPLACED)
