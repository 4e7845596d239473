"""A KIP-848 member's step, a toy, is proved for any number of members by the engine that proves handlers."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from fencepost.model.frozen import evolve
from fencepost.model.proofs.arbitrary_values import Contract, SymbolFactory
from fencepost.model.proofs.induction import HandlerEvent, HandlerProof, initially_false, prove_handler
from tests.support.consumer import next_step as steps
from tests.support.consumer.next_step import (
    NOTHING,
    STABLE,
    UNRELEASED,
    UNREVOKED,
    Member,
    Partition,
    Partitions,
    Targets,
    Window,
    held,
    next_step,
)
from tests.support.consumer.theorems import (
    EVENTS,
    OBEY,
    RETRY,
    STATEMENTS,
    approaches,
    distance,
    idempotent,
    is_undisturbed,
    keeps_contract,
)

NAMED = {event.name: event for event in EVENTS}


def prove_window(event: HandlerEvent) -> HandlerProof:
    return prove_handler(event, Window, lambda window: window, STATEMENTS)


@pytest.mark.parametrize("event", EVENTS, ids=NAMED)
def test_every_event_keeps_every_statement(event: HandlerEvent) -> None:
    verdict = prove_window(event)
    assert verdict.is_proved
    assert verdict.result.goals == len(STATEMENTS) * verdict.result.paths


def test_every_statement_holds_at_the_beginning() -> None:
    newcomer = Member(0, 0, UNRELEASED, NOTHING, NOTHING, NOTHING, {})
    assert initially_false(STATEMENTS, Window(0, 0, NOTHING, newcomer, NOTHING, NOTHING)) == ()


# --- Broken steps, each refuted by the statement that it breaks.

Step = Callable[[Member, Partitions, int, Partitions | None, Partitions], Member]


def take_what_is_held(
    member: Member, target: Partitions, epoch: int, reported: Partitions | None, taken: Partitions
) -> Member:
    return next_step(member, target, epoch, reported, NOTHING)


def advance_before_revoking(
    member: Member, target: Partitions, epoch: int, reported: Partitions | None, taken: Partitions
) -> Member:
    stepped = next_step(member, target, epoch, reported, taken)
    return evolve(stepped, previous=member.epoch, epoch=epoch)


def keep_what_is_revoked(
    member: Member, target: Partitions, epoch: int, reported: Partitions | None, taken: Partitions
) -> Member:
    stepped = next_step(member, target, epoch, reported, taken)
    return evolve(stepped, assigned=member.assigned | stepped.assigned)


def forget_to_revoke(
    member: Member, target: Partitions, epoch: int, reported: Partitions | None, taken: Partitions
) -> Member:
    return evolve(next_step(member, target, epoch, reported, taken), revoking=member.assigned - target, state=STABLE)


def date_ahead(
    member: Member, target: Partitions, epoch: int, reported: Partitions | None, taken: Partitions
) -> Member:
    stepped = next_step(member, target, epoch, reported, taken)
    return evolve(stepped, epochs=stepped.epochs | dict.fromkeys(stepped.assigned, epoch + 1))


def go_back(member: Member, target: Partitions, epoch: int, reported: Partitions | None, taken: Partitions) -> Member:
    return evolve(next_step(member, target, epoch, reported, taken), epoch=member.epoch - 1)


BREAKS: dict[Step, set[str]] = {
    take_what_is_held: {"OWN"},
    advance_before_revoking: {"WINDOW", "revoked-first"},
    keep_what_is_revoked: {"WINDOW", "apart", "revoked-first"},
    forget_to_revoke: {"WINDOW", "apart", "revoked-first"},
    date_ahead: {"partition-epochs"},
    go_back: {"epochs", "partition-epochs"},
}


def with_step(step: Step) -> Callable[..., Window]:
    """The handler of heartbeats with another NEXT."""

    def heartbeat(window: Window, reported: Partitions | None, subscribed: Partitions) -> Window:
        member = evolve(window.member, subscribed=subscribed)
        return evolve(window, member=step(member, window.target, window.target_epoch, reported, window.others_hold))

    return heartbeat


@pytest.mark.parametrize("step", BREAKS, ids=lambda step: step.__name__)
def test_a_broken_step_is_refuted_and_each_counterexample_replays(step: Step) -> None:
    broken = replace(NAMED["heartbeat"], handler=with_step(step))
    found = prove_window(broken).counterexamples
    assert {example.statement for example in found} == BREAKS[step]
    for example in found:
        assert broken.handler(example.state, *example.arguments) == example.result


# --- An adversary with a contract: the assignor.


def give_twice(subscribed: Partitions, epoch: int, made: Targets) -> Any:
    return made.member <= subscribed


def impossible(subscribed: Partitions, epoch: int, made: Targets) -> Any:
    return made.member <= subscribed and not made.member <= subscribed


def test_an_assignor_without_its_contract_is_refuted_and_replays() -> None:
    event = replace(NAMED["assign"], sorts=(Contract(Targets, give_twice),))
    (example,) = prove_window(event).counterexamples
    assert example.statement == "targets"
    assert steps.assign(example.state, *example.arguments) == example.result
    (assignor,) = example.arguments
    made = assignor(example.state.member.subscribed, example.state.group_epoch)
    assert not keeps_contract(example.state.member.subscribed, 0, made)


def test_a_contract_that_nothing_keeps_is_an_error() -> None:
    with pytest.raises(ValueError, match="an adversary cannot keep its contract"):
        prove_window(replace(NAMED["assign"], sorts=(Contract(Targets, impossible),)))


def call_twice(window: Window, assignor: steps.Assignor) -> Window:
    once = assignor(window.member.subscribed, window.group_epoch)
    again = assignor(window.member.subscribed, window.group_epoch)
    other = assignor(NOTHING, window.group_epoch)
    assert once.member is again.member and once.member is not other.member
    return window


def test_an_adversary_answers_as_before_what_it_was_asked_before() -> None:
    assert prove_window(replace(NAMED["assign"], handler=call_twice)).is_proved


# --- Statements about two runs.


def test_a_heartbeat_that_is_sent_again_gives_nothing_more() -> None:
    verdict = prove_handler(RETRY, Window, lambda pair: pair, (idempotent,))
    assert verdict.is_proved


def take_more(window: Window, reported: Partitions | None, subscribed: Partitions) -> tuple[Window, Window]:
    once = steps.heartbeat(window, reported, subscribed)
    return once, steps.heartbeat(once, NOTHING, subscribed)


def test_a_heartbeat_that_reports_something_else_is_no_retry() -> None:
    verdict = prove_handler(replace(RETRY, handler=take_more), Window, lambda pair: pair, (idempotent,))
    assert {one.statement for one in verdict.counterexamples} == {"idempotent"}


# --- Progress by a rank: a member that obeys is at the epoch of its target after two heartbeats, whatever others do.


def test_a_member_that_obeys_gets_nearer_with_each_heartbeat() -> None:
    assert prove_handler(OBEY, Window, lambda window: window, (*STATEMENTS, approaches)).is_proved


@pytest.mark.parametrize("name", ["other-heartbeat", "other-is-fenced", "bump"])
def test_nobody_else_takes_it_further_away(name: str) -> None:
    assert prove_handler(NAMED[name], Window, lambda window: window, (*STATEMENTS, is_undisturbed)).is_proved


def report_nothing(window: Window) -> Window:
    return steps.heartbeat(window, None, window.member.subscribed)


def test_a_member_that_confirms_nothing_stays_where_it_is() -> None:
    silent = replace(OBEY, handler=report_nothing)
    (example,) = prove_handler(silent, Window, lambda window: window, (*STATEMENTS, approaches)).counterexamples
    assert example.statement == "approaches"
    assert distance(example.result) >= distance(example.state) > 0


def test_a_new_target_takes_a_member_further_away() -> None:
    verdict = prove_handler(NAMED["assign"], Window, lambda window: window, (*STATEMENTS, is_undisturbed))
    assert {one.statement for one in verdict.counterexamples} == {"undisturbed"}


# --- The function that is proved is the one that runs: a group of several members.


def window_of(name: str, group: dict[str, Member], targets: dict[str, Partitions], epoch: int) -> Window:
    """The group as one of the members sees it."""
    others = [other for other in group if other != name]
    hold, meant = (NOTHING.union(*each) for each in ([held(group[o]) for o in others], [targets[o] for o in others]))
    return Window(epoch, epoch, targets[name], group[name], hold, meant)


def random_target(random: Random, names: str) -> dict[str, Partitions]:
    owners = {part: random.choice(names) for part in sorted(ALL)}
    return {name: frozenset(part for part, owner in owners.items() if owner == name) for name in names}


ALL = frozenset(Partition(str(number)) for number in range(6))


def run_group(seed: int) -> Iterator[Member]:
    """The members after their steps in a random run, in which all statements hold for each of them."""
    random, names = Random(seed), "abc"
    group = {name: Member(0, 0, UNRELEASED, NOTHING, NOTHING, ALL, {}) for name in names}
    targets, epoch = dict.fromkeys(names, NOTHING), 0
    for _ in range(60):
        if random.random() < 0.1:
            targets, epoch = random_target(random, names), epoch + 1
        name = random.choice(names)
        reported = random.choice((None, NOTHING, held(group[name]), group[name].assigned))
        group[name] = steps.heartbeat(window_of(name, group, targets, epoch), reported, ALL).member
        for each in names:
            window = window_of(each, group, targets, epoch)
            assert [one.id for one in STATEMENTS if len(one.subjects) == 1 and not one.holds(window)] == []
        yield group[name]


def test_a_group_of_three_keeps_the_statements_as_it_runs() -> None:
    assert {member.state for seed in range(20) for member in run_group(seed)} == {STABLE, UNREVOKED, UNRELEASED}


# --- The sorts of the door.


def test_only_sets_and_tokens_can_be_absent() -> None:
    with pytest.raises(TypeError, match=r"x: no symbol stands for <class 'int'> or none"):
        SymbolFactory().arbitrary(int | None, "x")
