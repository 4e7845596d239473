"""The proved member is the one that the client calls: each of its steps is a handler of an event of the proof, and
nothing else changes a member, but for partitions that the client gives up by itself (`shrink` of the kernel)."""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.model.classic.catalogue.client import CLIENT_CATALOGUE, MEMBER_RULES
from fencepost.model.classic.core.state import MemberView
from fencepost.model.classic.member import heartbeats, joining
from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import Client, ClientContext
from fencepost.model.classic.member.dispatch import handle_input
from fencepost.model.classic.member.member import Member, MemberStep, assignments, new_member
from fencepost.model.classic.member.step import ClientInput, ClientStep, Restart
from fencepost.model.classic.proofs.proof_events import member_events
from fencepost.model.frozen import evolve
from fencepost.model.proposal import member as resync
from tests.support import client_swarm
from tests.support.client_swarm import ClientSwarm
from tests.support.swarm_events import SwarmEvent
from tests.support.swarm_settings import ONLY_COOPERATIVE, ONLY_RANGE

PACKAGE = Path(core.__file__).parent
MODULES = [path for path in sorted(PACKAGE.glob("*.py")) if path.name not in ("member.py", "resync.py")]
PROVED = {event.handler.__name__: event.handler for event in member_events()}
QUESTIONS = {"is_current", "commit_request"}
"""Functions of the proved member that are no steps; its steps call them."""


def calls_of_core(path: Path) -> Iterator[str]:
    """The functions of the proved member that a module calls."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "core":
            yield node.attr


def fields_changed(source: str) -> Iterator[str]:
    """The fields of a member that a module changes by itself."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in ("evolve", "replace"):
            changed = ast.unparse(node.args[0]).rpartition(".")[2]
            yield from (keyword.arg or "**" for keyword in node.keywords if changed in ("member", "before"))


def test_every_step_that_the_client_takes_of_the_member_is_a_handler_of_the_proof() -> None:
    called = {name for path in MODULES for name in calls_of_core(path)}
    assert called - QUESTIONS <= PROVED.keys()
    assert PROVED.keys() - called == {"start_member", "restart"}  # a client that starts has a new member
    assert all(getattr(core, name) is PROVED[name] for name in called - QUESTIONS)


def test_nothing_but_ownership_is_changed_beside_the_member() -> None:
    assert {name for path in MODULES for name in fields_changed(path.read_text())} == {"owned"}
    assert list(fields_changed("x = evolve(client.member, state=1)")) == ["state"]


class MemberWatch:
    """Sees every step of the proved member, and compares what a client makes of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.results: list[Member] = []
        self.steps = 0
        for name, handler in PROVED.items():
            if hasattr(core, name):
                monkeypatch.setattr(core, name, self.watch_handler(handler))
        monkeypatch.setattr(client_swarm, "handle_input", self.handle_input)

    def watch_handler(self, handler: Callable[..., MemberStep]) -> Callable[..., MemberStep]:
        def run(*arguments: Any) -> MemberStep:
            step = handler(*arguments)
            self.results.append(step.member)
            return step

        return run

    def handle_input(self, client: Client, given: ClientInput, context: ClientContext) -> ClientStep:
        self.results = [client.member]
        step = handle_input(client, given, context)
        after = step.client.member
        if isinstance(given, Restart):
            self.results = [new_member(step.client.settings.member_settings(), 0)]
        assert any(is_same_or_owns_less(after, one) for one in self.results), (given, after)
        self.steps += len(self.results) - 1
        return step


def is_same_or_owns_less(after: Member, proved: Member) -> bool:
    """Whether the members are equal, but for partitions that the first does not own."""
    owned = (*proved.owned, *(False for _ in after.owned))
    others = (one.name for one in fields(Member) if one.name != "owned")
    return all(getattr(after, name) == getattr(proved, name) for name in others) and all(
        had or not has for has, had in zip(after.owned, owned, strict=False)
    )


def run_swarm(strategies: tuple[Any, ...]) -> None:
    swarm = ClientSwarm([strategies] * 3, static=1)
    for index in range(3):
        swarm.produce(1)
        swarm.play(SwarmEvent("start", index))
        swarm.settle()
    for kind, index in (("crash", 1), ("upgrade", 2), ("disconnect", 0), ("close", 0)):
        swarm.play(SwarmEvent(kind, index))
        swarm.settle()


@pytest.mark.parametrize("strategies", [ONLY_RANGE, ONLY_COOPERATIVE])
def test_a_client_is_always_at_a_step_of_the_proved_member(
    monkeypatch: pytest.MonkeyPatch, strategies: tuple[Any, ...]
) -> None:
    watch = MemberWatch(monkeypatch)
    run_swarm(strategies)
    assert watch.steps > 50


def test_a_client_that_changes_its_member_by_itself_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def skip_generation(client: Client, context: ClientContext) -> Client:
        return evolve(client, member=evolve(client.member, generation=client.member.generation + 1))

    MemberWatch(monkeypatch)
    monkeypatch.setattr(heartbeats, "extend_session", skip_generation)
    monkeypatch.setattr(joining, "enable_heartbeats", skip_generation)
    with pytest.raises(AssertionError):
        run_swarm(ONLY_RANGE)


# --- The table of the client's rules: complete, without idle rows, and each row reached by a test.

HERE = Path(__file__).parent
HANDLERS = sorted((HERE.parents[2] / "model" / "classic" / "member").glob("*.py"))
REFINED = {"member.commit.answered", "member.join.refused", "member.sync.refused"}
"""Branches of the proved member for which the client has several rules each, one for each reaction."""


def rule_names_in(path: Path) -> Iterator[str]:
    """The strings in a module that look like the name of a rule."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            prefix, dot, rest = node.value.partition(".")
            if prefix in ("client", "member") and dot and rest and " " not in rest:
                yield node.value


def rules_reached_by(path: Path) -> Iterator[str]:
    """The rules that the tests of a module promise to reach; the decorator fails where one does not."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reaches":
            yield from (one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str))


def test_every_rule_that_a_handler_names_is_in_the_table_and_the_other_way_round() -> None:
    assert {name for path in HANDLERS for name in rule_names_in(path)} == set(MEMBER_RULES) | REFINED


def test_a_test_reaches_every_rule() -> None:
    reached = {rule for path in HERE.glob("test_*.py") for rule in rules_reached_by(path)}
    assert reached == set(MEMBER_RULES)


def test_every_requirement_of_a_member_has_a_rule_unless_it_is_about_settings_or_about_the_group() -> None:
    families = ("MEMBER", "HBT", "CALLBACK", "MCOMMIT", "WIRE")
    answered = {id for row in MEMBER_RULES.values() for id in row.requirements}
    open_ones = {id for id, one in CLIENT_CATALOGUE.items() if one.family in families} - answered
    assert open_ones == {"HBT-13", "CALLBACK-14", "MCOMMIT-21"}  # test_joining, test_swarm, test_swarm


@pytest.mark.parametrize("name", MEMBER_RULES)
def test_rows_answer_to_requirements_that_exist(name: str) -> None:
    row = MEMBER_RULES[name]
    assert row.name == name and row.guard and row.requirements
    assert set(row.requirements) <= set(CLIENT_CATALOGUE)
    assert len(set(row.requirements)) == len(row.requirements)


# --- The assignments of a leader: those of the definition for each member and partition by itself (KIP-429).

IDS = ("a", "b", "c", "d")
Plan = Sequence[str | None]


def gets(members: Sequence[MemberView], view: MemberView, plan: Plan, partition: int) -> bool:
    """The member has an id, the plan gives it the partition, and no other one claims that."""
    is_claimed = any(
        other.metadata is not None and other.metadata[partition] and other.id != view.id for other in members
    )
    return view.id is not None and plan[partition] == view.id and not is_claimed


@st.composite
def groups(draw: st.DrawFn) -> tuple[tuple[MemberView, ...], tuple[str | None, ...]]:
    """Members with their claims, of which some are absent or unreadable, and a plan, also for strangers and nobody."""
    count = draw(st.integers(0, 4))
    claims = st.none() | st.tuples(*[st.booleans()] * count)
    ids = draw(st.lists(st.none() | st.sampled_from(IDS), max_size=4))
    views = tuple(MemberView(id, None, draw(claims)) for id in ids)  # type: ignore[arg-type]
    return views, draw(st.tuples(*[st.none() | st.sampled_from((*IDS, "z"))] * count))


@given(groups())
def test_a_leader_assigns_what_the_plan_gives_and_nobody_else_claims(
    group: tuple[tuple[MemberView, ...], tuple[str | None, ...]],
) -> None:
    members, plan = group
    wanted = [(one.id, tuple(gets(members, one, plan, part) for part in range(len(plan)))) for one in members]
    assert list(assignments(members, plan)) == wanted  # type: ignore[arg-type]
    owners = [next((one.id for one in members if gets(members, one, plan, part)), None) for part in range(len(plan))]
    assert list(resync.given_partitions(members, plan)) == owners  # type: ignore[arg-type]
