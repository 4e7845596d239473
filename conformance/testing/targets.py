"""The kinds of targets of a test suite, and the run for each."""

import os
import secrets
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from fencepost.adapters.target import Target, TargetError
from fencepost.adapters.virtual_clock import run_virtual_in_thread
from fencepost.conformance.api.targets import AnyTarget, KafkaTarget, target_factory
from fencepost.conformance.plan import BUNDLED, Plan
from fencepost.conformance.profile import Profile, load_profile
from fencepost.conformance.protocols.kafka_address import kafka_target
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.play import DEFAULT_GRACE_MS, play_scenario
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.conformance.testing.in_memory import ASYNC_GRACE_MS, InMemory, InMemoryRun
from fencepost.conformance.testing.remote_runs import Broker, BrokerRun, hold_lock
from fencepost.conformance.testing.runs import InProcessRun, MakeRun, RunChoices, SessionRun, in_thread

Command: TypeAlias = str | Sequence[str]
TestedTarget: TypeAlias = AnyTarget | InMemory | Broker
"""What `fencepost_target` returns: the result of `in_memory` or of `broker`, or what `fencepost.run` takes."""


def broker(
    address: str = "",
    *,
    start: Command = (),
    kill: Command = (),
    profile: str | os.PathLike[str] | None = None,
) -> Broker:
    """A broker over TCP as what `fencepost_target` returns.

    `address` is host:port, with kafka+ssl:// before it for TLS. `start` is a command that starts the broker and prints
    its address on a line of its own once it serves; then restarts are tested, and the broker is ended after the run. If
    it does not stay in the foreground, `kill` ends it without warning. `profile` is the path of a file that says what
    cannot be asked. Raises `ProfileError` for a file that is none, and `TargetError` without address and command.
    """
    path = Path(profile) if profile is not None else None
    told = load_profile(path) if path is not None else Profile(folder=Path.cwd())
    if start:
        told = replace(told, start=split_command(start), kill=split_command(kill))
    if not address and not told.start:
        raise TargetError("no broker: give its address, a start command, or a profile with [target] start")
    return Broker(with_scheme(address), told, path)


def split_command(command: Command) -> tuple[str, ...]:
    """The words of a command."""
    return tuple(shlex.split(command)) if isinstance(command, str) else tuple(command)


def with_scheme(address: str) -> str:
    """The address as the command line takes it."""
    return address if not address or "://" in address else f"kafka://{address}"


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """What the test cases of a session on one target want: the requirements to be tested, those of them that are
    `expected` to be asked for in this process, declared deviations, and the number of random schedules."""

    requirements: tuple[str, ...]
    expected: frozenset[str] = frozenset()
    known: Mapping[str, str] = field(default_factory=dict)
    schedules: int = 0


def make_session_run(target: TestedTarget, choices: RunChoices, plan: SessionPlan) -> SessionRun:
    """The run of a session on a target. Raises `TargetError` and `ProfileError`, and `TypeError` for no target."""
    if isinstance(target, str) and target != BUNDLED:
        target = Broker(with_scheme(target), choices.profile)
    elif isinstance(target, KafkaTarget):
        path = target.profile_path
        target = Broker(target.url, load_profile(path) if path is not None else choices.profile, path)
    if isinstance(target, Broker):
        told = replace(target.profile, deviations={**choices.profile.deviations, **target.profile.deviations})
        target = replace(target, profile=declare_known(told, plan.known))
        return BrokerRun(target, choices, plan.requirements, plan.schedules)
    choices = replace(choices, profile=declare_known(choices.profile, plan.known))
    if isinstance(target, InMemory):
        if choices.profile.grace is None and in_thread(run_virtual_in_thread(target.is_async())):
            choices = replace(choices, profile=replace(choices.profile, grace=ASYNC_GRACE_MS))
        return in_process_run(partial(in_memory_run, target), choices, plan)
    if target == BUNDLED:
        return in_process_run(BundledRun, choices, plan)
    if isinstance(target, str) or not (callable(target) or hasattr(target, "channel")):
        raise TypeError(f"fencepost_target returned {target!r}; return in_memory(...), broker(...) or an address")
    return in_process_run(partial(own_run, target), choices, plan)


def in_process_run(
    make_run: MakeRun,
    choices: RunChoices,
    plan: SessionPlan,
) -> InProcessRun:
    """The run of a session on a target in this process."""
    return InProcessRun(make_run, choices, plan.requirements, plan.expected)


def in_memory_run(coordinator: InMemory, plan: Plan, profile: Profile) -> BundledRun:
    """A run on a coordinator, which can be made with any settings."""
    settings = {name: getattr(coordinator.settings, name) for name in coordinator.settings.__dataclass_fields__}
    return InMemoryRun(plan, replace(profile, settings={**settings, **profile.settings}), coordinator.make_target)


def own_run(target: Target | Callable[[], Target], plan: Plan, profile: Profile) -> BundledRun:
    """A run on a `Target`, which has settings of its own."""
    return BundledRun(plan, profile, target_factory(target), can_configure=False)


def declare_known(profile: Profile, known: Mapping[str, str]) -> Profile:
    """The profile with further declared deviations."""
    return replace(profile, deviations={**profile.deviations, **known}) if known else profile


def is_over_network(target: TestedTarget, names: Collection[str] = (BUNDLED,)) -> bool:
    """Whether a target is reached over TCP."""
    return isinstance(target, Broker | KafkaTarget) or (isinstance(target, str) and target not in names)


def declared_deviations(target: TestedTarget, profile: Profile, known: Mapping[str, str]) -> Mapping[str, str]:
    """The deviations that the profile of the session, that of the target, and the tests declare for a target."""
    own: Mapping[str, str] = {}
    if isinstance(target, Broker):
        own = target.profile.deviations
    elif isinstance(target, KafkaTarget) and target.profile_path is not None:
        own = load_profile(target.profile_path).deviations
    return {**profile.deviations, **own, **known}


class InProcessPlayer:
    """Plays schedules on a target in this process, on virtual time, a fresh one for each."""

    def __init__(self, run: BundledRun) -> None:
        self.run = run

    def play(self, scenario: Scenario) -> ScenarioRun:
        """As `SchedulePlayer.play`."""
        return in_thread(run_virtual_in_thread(self.run.play(scenario, "check")))


class BrokerPlayer:
    """Plays schedules on a broker."""

    def __init__(self, broker: Broker, choices: RunChoices) -> None:
        self.broker = broker
        self.choices = choices

    def play(self, scenario: Scenario) -> ScenarioRun:
        """As `SchedulePlayer.play`."""
        with hold_lock(self.broker):
            return in_thread(self.play_now(scenario))

    async def play_now(self, scenario: Scenario) -> ScenarioRun:
        """Play a schedule, and remove its group."""
        profile, token = self.broker.profile, secrets.token_hex(3)
        grace = profile.grace if profile.grace is not None else DEFAULT_GRACE_MS
        target = kafka_target(self.broker.address, profile)
        restart = target.restart if profile.can_restart else None
        try:
            description = await target.open()
            group = f"{scenario.name}-{token}-check"
            run = await play_scenario(scenario, target, description, group, grace=grace, restart=restart)
            await target.remove_traces(token)
            return run
        finally:
            await target.close()


def schedule_player(target: TestedTarget, choices: RunChoices) -> InProcessPlayer | BrokerPlayer:
    """What plays the schedules of a test on a target. Raises as `make_session_run`."""
    made = make_session_run(target, choices, SessionPlan(("FIND-01",)))
    if isinstance(made, BrokerRun):
        return BrokerPlayer(made.broker, choices)
    assert isinstance(made, InProcessRun)
    return InProcessPlayer(made.run)
