"""The kinds of targets of a test suite, and the run for each."""

import asyncio
import os
import secrets
import shlex
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from fencepost.adapters.address import TargetError, format_address
from fencepost.adapters.serve.server import Server
from fencepost.adapters.virtual_clock import run_virtual_in_thread
from fencepost.conformance.plan import BUNDLED
from fencepost.conformance.profile import Profile, load_profile
from fencepost.conformance.run.bundled import BundledRun
from fencepost.conformance.run.play import DEFAULT_GRACE_MS, play_scenario
from fencepost.conformance.run.registry import DEFAULT_PROTOCOL
from fencepost.conformance.subject import Scenario, ScenarioRun
from fencepost.conformance.testing.api import AnyTarget, KafkaTarget, target_factory, with_scheme
from fencepost.conformance.testing.group_schedule import PlaySchedule
from fencepost.conformance.testing.in_memory import ASYNC_GRACE_MS, InMemory
from fencepost.conformance.testing.runs import (
    Broker,
    BrokerRun,
    InProcessRun,
    MakeRun,
    RunChoices,
    SessionRun,
    hold_lock,
)
from fencepost.conformance.testing.threads import enter_in_thread, in_thread
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import DecodedRequest
from fencepost.traces.events import Body

# -- the bundled coordinator as a broker in a thread of the test ------------------------------------------------------

T = TypeVar("T")
QUICK_SETTINGS = Settings(min_session_timeout=100, initial_rebalance_delay=50)
"""Settings with which a group forms at once."""
TIMEOUT_S = 10.0
"""How long the server may take for anything."""
_DESCRIBE_VERSION, _LIST_VERSION, _FETCH_VERSION = 5, 4, 8


@dataclass(frozen=True, slots=True)
class ServedRequest:
    """A request that the coordinator answered, with its response."""

    api: str
    version: int
    client_id: str | None
    body: Body
    response: Body


@dataclass(frozen=True, slots=True)
class ServedGroup:
    """A group: its state as DescribeGroups names it, its protocol, the client ids of its members, and its committed
    offsets by topic and partition."""

    state: str
    protocol: str
    clients: tuple[str, ...]
    offsets: dict[tuple[str, int], int]


class ServedCoordinator:
    """A running broker, as `fencepost_coordinator` gives it: one node that coordinates all groups and keeps all topics
    in memory. Clients reach it at `bootstrap`, which is host:port. A topic that is asked for is made, with four
    partitions."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop, requests: list[ServedRequest]) -> None:
        self.bootstrap = format_address(*server.address)
        self._server = server
        self._loop = loop
        self._requests = requests

    def requests(self, api: str = "") -> tuple[ServedRequest, ...]:
        """The requests to the coordinator that were answered so far, or those of one API, in the order of the
        responses."""
        return tuple(each for each in tuple(self._requests) if api in ("", each.api))

    @property
    def groups(self) -> dict[str, ServedGroup]:
        """The groups that exist now."""
        return self._call(self._describe_groups())

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic. Raises `ValueError` if it exists or cannot be."""

        async def create() -> Error:
            return self._server.create_topic(name, partitions)

        error = self._call(create())
        if error is not Error.NONE:
            raise ValueError(f"topic {name!r} with {partitions} partitions: {error.name}")

    async def _describe_groups(self) -> dict[str, ServedGroup]:
        listed = await self._server.ask("ListGroups", _LIST_VERSION, {"states_filter": []})
        names = [row["group_id"] for row in listed["groups"]]
        described = await self._server.ask("DescribeGroups", _DESCRIBE_VERSION, {"groups": names})
        return {row["group_id"]: await self._view(row) for row in described["groups"]}

    async def _view(self, row: Body) -> ServedGroup:
        asked = {"groups": [{"group_id": row["group_id"], "topics": None}], "require_stable": False}
        fetched = await self._server.ask("OffsetFetch", _FETCH_VERSION, asked)
        offsets = {
            (topic["name"], partition["partition_index"]): partition["committed_offset"]
            for topic in fetched["groups"][0]["topics"]
            for partition in topic["partitions"]
        }
        clients = tuple(member["client_id"] for member in row["members"])
        return ServedGroup(row["group_state"], row["protocol_data"], clients, offsets)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work in the thread of the server."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)


@contextmanager
def serve_in_thread(settings: Settings = QUICK_SETTINGS) -> Iterator[ServedCoordinator]:
    """A coordinator that serves on a free port of this machine until the block ends. Raises `OSError` if there is no
    port."""

    @asynccontextmanager
    async def serve() -> AsyncIterator[ServedCoordinator]:
        requests: list[ServedRequest] = []

        def observe(request: DecodedRequest, response: Body) -> None:
            requests.append(
                ServedRequest(request.api or "", request.version, request.client_id, request.body, response)
            )

        server = Server(settings, None, observe=observe)
        try:
            await server.listen("127.0.0.1", 0)
            yield ServedCoordinator(server, asyncio.get_running_loop(), requests)
        finally:
            await server.close()

    with enter_in_thread(serve) as served:
        yield served


# -- the kinds of targets of a test suite -----------------------------------------------------------------------------

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


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """What the test cases of a session on one target want: the requirements to be tested, those of them that are
    `expected` to be asked for in this process, the deviations that they declare, and the number of their random
    schedules."""

    requirements: tuple[str, ...]
    expected: frozenset[str] = frozenset()
    known: Mapping[str, str] = field(default_factory=dict)
    schedules: int = 0


def make_session_run(target: TestedTarget, choices: RunChoices, plan: SessionPlan) -> SessionRun:
    """The run of a session on a target. Raises `TargetError` and `ProfileError`, and `TypeError` for no target."""
    known = declared_deviations(target, choices.profile, plan.known)
    if (found := broker_of(target, choices.profile)) is not None:
        found = replace(found, profile=replace(found.profile, deviations=known))
        return BrokerRun(found, choices, plan.requirements, plan.schedules)
    choices = replace(choices, profile=replace(choices.profile, deviations=known))
    make_run: MakeRun = BundledRun
    if isinstance(target, InMemory):
        if choices.profile.grace is None and in_thread(run_virtual_in_thread(target.is_async())):
            choices = replace(choices, profile=replace(choices.profile, grace=ASYNC_GRACE_MS))
        make_run = target.make_run
    elif target != BUNDLED:
        if isinstance(target, str | KafkaTarget | Broker) or not (callable(target) or hasattr(target, "channel")):
            raise TypeError(f"fencepost_target returned {target!r}; return in_memory(...), broker(...) or an address")
        make_run = partial(BundledRun, make_target=target_factory(target), can_configure=False)
    return InProcessRun(make_run, choices, plan.requirements, plan.expected)


def broker_of(target: TestedTarget, profile: Profile) -> Broker | None:
    """The broker over TCP that a target stands for, with this profile if it has none of its own; None for a target in
    this process. Raises `ProfileError`."""
    if isinstance(target, str) and target != BUNDLED:
        return Broker(with_scheme(target), profile)
    if isinstance(target, KafkaTarget):
        path = target.profile_path
        return Broker(target.url, load_profile(path) if path is not None else profile, path)
    return target if isinstance(target, Broker) else None


def declared_deviations(target: TestedTarget, profile: Profile, known: Mapping[str, str]) -> Mapping[str, str]:
    """The deviations that the profile of the session, that of the target, and the tests declare for a target."""
    found = broker_of(target, profile)
    return {**profile.deviations, **(found.profile.deviations if found is not None else {}), **known}


async def play_on_broker(broker: Broker, scenario: Scenario) -> ScenarioRun:
    """Play a schedule on a broker, and remove its group."""
    profile, token = broker.profile, secrets.token_hex(3)
    grace = profile.grace if profile.grace is not None else DEFAULT_GRACE_MS
    target = DEFAULT_PROTOCOL.make_target(broker.address, profile)
    restart = target.restart if profile.can_restart else None
    try:
        description = await target.open()
        group = f"{scenario.name}-{token}-check"
        run = await play_scenario(scenario, target, description, group, grace=grace, restart=restart)
        await target.remove_traces(token)
        return run
    finally:
        await target.close()


def schedule_player(target: TestedTarget, choices: RunChoices) -> PlaySchedule:
    """What plays the schedules of a test on a target: on virtual time in this process, a fresh one for each, or on a
    broker. Raises as `make_session_run`."""
    made = make_session_run(target, choices, SessionPlan(("FIND-01",)))

    def play(scenario: Scenario) -> ScenarioRun:
        if isinstance(made, BrokerRun):
            with hold_lock(made.broker):
                return in_thread(play_on_broker(made.broker, scenario))
        assert isinstance(made, InProcessRun)
        return in_thread(run_virtual_in_thread(made.run.play(scenario, "check")))

    return play
