"""Every outcome of one step: over the choices the protocol leaves open and the dialects not yet decided."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, cast

from fencepost.model.classic.coordinator.state import GroupState, StepResult
from fencepost.model.classic.core.member_table import accepts, is_member
from fencepost.model.classic.core.state import Choices, Context, Group, Phase
from fencepost.model.classic.dialect import NOT_BUILT, Dialect
from fencepost.model.classic.messages.requests import JoinGroup, Request
from fencepost.traces.judge.search.configuration import Decisions

REPLACEMENT_PREFIX = "join.replace.stable"
"""How the rules begin by which a static member comes back to a stable group."""
StepFunction = Callable[[Choices, Dialect], StepResult]


class DialectProbe:
    """A dialect that notes which of its open questions a step asks."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = dict(decisions)
        self.open_questions: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name in self._decisions:
            return self._decisions[name]
        if name in NOT_BUILT:
            return True
        self.open_questions.append(name)
        return True

    def settle(self, question: str) -> None:
        """Answer a question that makes no difference to the step, so that it does not count as open."""
        self._decisions.setdefault(question, True)


def settle_question_of_room(context: Context, state: GroupState, request: Request) -> None:
    """A JoinGroup asks whether a static member that comes back needs room: it makes no difference where there is."""
    if isinstance(request, JoinGroup) and isinstance(context.dialect, DialectProbe):
        group = state.group if state.group is not None else Group()
        if accepts(group, request.core.member, context.max_group_size):
            context.dialect.settle("restart_needs_room")


def outcomes_over_dialects(
    run: Callable[[Dialect], StepResult], decisions: Decisions
) -> Iterator[tuple[StepResult, Decisions]]:
    """The outcomes of a step in every dialect that fits what is decided; questions without effect stay open."""
    probe = DialectProbe(decisions)
    outcome = run(cast(Dialect, probe))
    return outcomes_over_questions(run, decisions, outcome, tuple(dict.fromkeys(probe.open_questions)))


def outcomes_over_questions(
    run: Callable[[Dialect], StepResult], decisions: Decisions, outcome: StepResult, questions: tuple[str, ...]
) -> Iterator[tuple[StepResult, Decisions]]:
    """The outcomes of a step that has this outcome, and asks these questions, if all that is open is true."""
    if not questions:
        yield outcome, decisions
        return
    question, *others = questions
    yes = list(outcomes_over_questions(run, with_decision(decisions, question, True), outcome, tuple(others)))
    no = list(outcomes_over_dialects(run, with_decision(decisions, question, False)))
    if len(yes) == len(no) == 1 and yes[0][0] == no[0][0]:
        yield yes[0][0], decisions
        return
    yield from yes
    yield from no


def with_decision(decisions: Decisions, question: str, response: bool) -> Decisions:
    """The decisions with one more, in one order."""
    return tuple(sorted((*decisions, (question, response))))


def outcomes_over_choices(
    run: StepFunction,
    before: GroupState,
    member_id: Any,
    leaders: Iterable[Any],
    protocols: Iterable[Any],
    decisions: Decisions,
) -> Iterator[tuple[StepResult, Decisions]]:
    """The outcomes of a step over leaders and protocols, taken from the responses seen or else from the group."""
    leads, names = tuple(leaders), tuple(protocols)
    first = Choices(member_id, leads[0] if leads else None, names[0] if names else None)
    outcomes = list(outcomes_over_dialects(partial(run, first), decisions))
    if not any(has_choice(before, outcome) for outcome, _ in outcomes):
        yield from outcomes
        return
    leads = leads or tuple(slot.id for slot in member_slots(outcomes))
    if any(outcome.rule.startswith(REPLACEMENT_PREFIX) for outcome, _ in outcomes):
        names = ()  # That vote only decides whether there is a rebalance; what is seen may come of a later one.
    names = names or tuple(dict.fromkeys(each.name for slot in member_slots(outcomes) for each in slot.protocols))
    seen: list[StepResult] = []
    for leader in leads or (None,):
        for name in names or (None,):
            choices = Choices(member_id, leader, name)
            chosen = outcomes if choices == first else outcomes_over_dialects(partial(run, choices), decisions)
            for outcome, decided in chosen:
                if outcome not in seen:
                    seen.append(outcome)
                    yield outcome, decided


def member_slots(outcomes: Iterable[tuple[StepResult, Decisions]]) -> list[Any]:
    """The member slots after these outcomes."""
    return [
        slot
        for outcome, _ in outcomes
        if outcome.state.group is not None
        for slot in outcome.state.group.slots
        if is_member(slot)
    ]


def has_choice(before: GroupState, outcome: StepResult) -> bool:
    """The step elected a leader or a protocol, so a choice may have mattered."""
    after = outcome.state.group
    if after is None or (before.group is None and after.phase is Phase.EMPTY):
        return False
    completed = before.group is None or after.generation != before.group.generation
    return (completed and after.phase is Phase.COMPLETING) or outcome.rule.startswith(REPLACEMENT_PREFIX)
