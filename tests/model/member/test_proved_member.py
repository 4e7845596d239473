"""The proved member is the one that the client calls: each of its steps is a handler of an event of the proof, and
nothing else changes a member, but for partitions that the client gives up by itself (`shrink` of the kernel)."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from fencepost.model.classic.member import heartbeats, joining
from fencepost.model.classic.member import member as core
from fencepost.model.classic.member.client import Client, ClientContext
from fencepost.model.classic.member.dispatch import handle_input
from fencepost.model.classic.member.member import Member, MemberStep, new_member
from fencepost.model.classic.member.step import ClientInput, ClientStep, Restart
from fencepost.model.classic.proofs.proof_events import member_events
from fencepost.model.frozen import evolve
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
