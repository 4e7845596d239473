"""The target of a Kafka cluster, or of any implementation of its wire protocol."""

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import suppress

from fencepost.adapters.address import Address, Bootstrap, TargetError, format_url
from fencepost.adapters.security.authentication import PLAINTEXT, Security
from fencepost.adapters.target import Description, TraceBuilder
from fencepost.adapters.wire import discovery
from fencepost.adapters.wire.channel import WireChannel
from fencepost.adapters.wire.cluster import (
    GROUP_KEY,
    RETRY_DELAY_S,
    AdminClient,
    Cluster,
    LearnedSettings,
    SettingClaims,
    ask_settings,
)
from fencepost.adapters.wire.connection import ConnectionLossError, ConnectionPool, connection_limit
from fencepost.adapters.wire.discovery import SettingsProbe
from fencepost.adapters.wire.group_requests import GroupRequests
from fencepost.adapters.wire.process_control import (
    BRIEF_WINDOWS,
    CALM_WINDOWS,
    IdleWatch,
    MoveCommand,
    ProcessControl,
    Windows,
)
from fencepost.model.wire.primitives import ZERO_UUID
from fencepost.traces.events import Order

MAX_CONNECTING = 4
"""Connections that are being opened at the same time: the accept queue of some targets is that short."""

MAX_MARKS = 5
"""How often the topic is created again while other runs delete it."""
MAX_AGREEING_S = 20.0
"""How long nodes may take to agree on who coordinates a group, in seconds."""


def bootstrap_addresses(address: Address | Bootstrap | None) -> tuple[Address, ...]:
    """The addresses to ask one after the other; one that nobody answers at if there is none yet."""
    if isinstance(address, Bootstrap):
        return address.addresses
    return (address if address is not None else ("", 0),)


class KafkaTarget:
    """Implements `Target` for a cluster that is reached at `address`, or at the first of several that answers, as
    `security` says; without one, `process_control` starts it when it is opened, and ends it when it is closed.

    `overrides` are settings by field of `Settings`, which win over the target's own; it is an error if they contradict
    these, unless they `may_contradict`. `timeout` is how many seconds a connection and a response to one of the kit's
    own requests may take, `ready_timeout` how many a topic or a coordinator may take to become ready. With a
    `process_control` the target can be restarted, with a `move_command` its groups can be moved from node to node.
    """

    def __init__(
        self,
        address: Address | Bootstrap | None,
        *,
        security: Security = PLAINTEXT,
        overrides: Mapping[str, int] | None = None,
        may_contradict: bool = False,
        process_control: ProcessControl | None = None,
        move_command: MoveCommand | None = None,
        topic: str = "fencepost",
        timeout: float = 10.0,
        ready_timeout: float = 60.0,
    ) -> None:
        self._given_address = address
        self._bootstrap = bootstrap_addresses(address)
        self._address = self._bootstrap[0]
        self._security = security
        self._is_started = address is not None
        self._claims = SettingClaims(dict(overrides or {}), may_contradict)
        self._learned: LearnedSettings | None = None
        self._is_probed = False
        self._made_topic = False
        self._process_control = process_control
        self._move_command = move_command
        self._move_failure = ""
        """Why the last move failed."""
        self._topic = topic
        self._timeout = timeout
        self._ready_timeout = ready_timeout
        self._pool = ConnectionPool(connection_limit(), timeout, security)
        self._client = AdminClient(self._pool, timeout)
        self._cluster = Cluster(self._client, min(ready_timeout, timeout))
        self._channels: set[WireChannel] = set()
        self._idle_watch = IdleWatch(process_control)

    async def open(self) -> Description:
        """As `Target.open`."""
        try:
            if not self._is_started and self._process_control is not None:
                return await self._start(self._process_control)
            return await self._discover()
        except BaseException:
            await self.close()
            raise

    async def _discover(self) -> Description:
        client, cluster = self._client, self._cluster
        self._address, client.versions = await discovery.learn_first(client, self._bootstrap)
        brokers, name = await discovery.learn_brokers(client, self._address)
        cluster.replace_brokers(brokers)
        if self._learned is None:
            self._learned = await ask_settings(client, cluster, self._claims)
        topic_id, created = await discovery.ensure_topic(client, cluster, self._topic, self._ready_timeout)
        self._made_topic = self._made_topic or created
        if topic_id is None:
            client.versions = discovery.without_topic_ids(client.versions)
        topic = {"name": self._topic, "topic_id": topic_id}
        await discovery.await_coordinators(client, cluster, self._learned.settings(), topic, self._ready_timeout)
        if not self._is_probed:
            self._learned = await self._probe(self._learned, topic_id)
            self._is_probed = True
        return Description(
            name=format_url(self._address, uses_tls=self._security.uses_tls),
            order=Order.INTERVALS,
            clock="wall",
            versions=client.versions,
            settings=self._learned.settings(),
            topic=self._topic,
            topic_id=topic_id,
            brokers=tuple(brokers),
            can_restart=self._process_control is not None,
            can_move=self._move_command is not None and len(brokers) > 1,
            implementation={"cluster": name} if name else {},
            origins=self._learned.all_origins(),
            remarks=self._learned.remarks,
        )

    async def _probe(self, learned: LearnedSettings, topic_id: str | None) -> LearnedSettings:
        """Measure the settings that are missing."""
        requests = GroupRequests(self._client, self._cluster)
        topic = {"name": self._topic, "topic_id": topic_id}
        return await SettingsProbe(requests, learned, topic, secrets.token_hex(3)).measure()

    async def measure_again(self, topic_id: str | None) -> Mapping[str, tuple[int, int]]:
        """Measure the settings once more that were measured; those that differ by now, with both values."""
        if self._learned is None:
            return {}
        again = await self._probe(self._learned.told_only(), topic_id)
        return discovery.find_contradictions(self._learned, again)

    def channel(self, recorder: TraceBuilder) -> WireChannel:
        """As `Target.channel`."""
        return WireChannel(self._client, self._cluster, recorder, self._channels)

    async def open_idle_connections(self, connections: int) -> None:
        """Open so many idle connections, spread over the brokers. Where the target's queue is full, the system
        retries only after a second, amid a schedule, so they are opened beforehand and few at a time."""
        addresses = tuple(self._cluster.brokers.values())
        share = -(-connections // len(addresses))
        missing = [each for each in addresses for _ in range(share - self._pool.idle_count(each))]

        async def make() -> None:
            try:
                while missing:
                    await self._client.request(missing.pop(), "ApiVersions", 0, {}, fresh=True)
            except (ConnectionLossError, TargetError):
                missing.clear()  # who needs one will find out why there is none

        await asyncio.gather(*(make() for _ in range(MAX_CONNECTING)))

    async def is_alive(self) -> bool:
        """Whether the target responds on a new connection."""
        fresh = ConnectionPool(1, self._timeout, self._security)
        try:
            for address in dict.fromkeys((self._address, *self._bootstrap)):
                with suppress(ConnectionLossError):
                    await AdminClient(fresh, self._timeout).request(address, "ApiVersions", 0, {})
                    return True
        finally:
            await fresh.close()
        return False

    async def measure_response_time(self) -> float:
        """Measure how many seconds a response takes at present, infinity without one. The kit's own delays count."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            await self._client.request(self._address, "ApiVersions", 0, {})
        except ConnectionLossError:
            return float("inf")
        return loop.time() - begun

    async def watch_idle(self, when: str) -> None:
        """Measure the idle target if the kit starts and kills it; note CPU time or output beyond the limits in
        `idle_findings` if it is seen twice. `when` is a phrase such as "after the scenarios"."""
        await self._look_at_idle(when, CALM_WINDOWS)

    async def _look_at_idle(self, when: str, windows: Windows) -> None:
        addresses = tuple(dict.fromkeys((self._address, *self._cluster.brokers.values())))
        requests = GroupRequests(self._client, self._cluster)
        await self._idle_watch.look(when, addresses, requests.find_rebalancing, windows)

    @property
    def idle_findings(self) -> tuple[str, ...]:
        """What the target did while it was idle that it should not."""
        return self._idle_watch.findings

    @property
    def idle_remarks(self) -> tuple[str, ...]:
        """Why the target was not watched while it was idle, if it should have been."""
        return self._idle_watch.remarks

    async def mark_run(self, token: str) -> str | None:
        """Create a group with `token` in its name, so that no other run deletes the topic from now on; returns the
        topic's id. The topic is created again if that happened meanwhile."""
        requests = GroupRequests(self._client, self._cluster)
        topic_id = None
        for _ in range(MAX_MARKS):
            await requests.mark_run(token, {"name": self._topic, "topic_id": topic_id or ZERO_UUID})
            topic_id, created = await discovery.ensure_topic(
                self._client, self._cluster, self._topic, self._ready_timeout
            )
            self._made_topic = self._made_topic or created
            if not created:
                break
        return topic_id

    async def remove_traces(self, token: str) -> tuple[str, ...]:
        """Delete the groups with `token` in their names that channels used, and the topic if it was created and no
        other run uses it; returns a line for each kind of thing that stays."""
        groups = [group for group in self._cluster.groups if token in group]
        requests = GroupRequests(self._client, self._cluster)
        left = await requests.remove_groups(groups)
        stays = [f"{len(left)} groups of the kit stay, such as {left[0]}"] if left else []
        try:
            other = await requests.find_other_run(token) if self._made_topic else ""
            if other:
                stays.append(f"the topic {self._topic} stays, which the kit created: another run uses it, see {other}")
            elif self._made_topic and not await discovery.remove_topic(self._client, self._cluster, self._topic):
                stays.append(f"the topic {self._topic} stays, which the kit created")
        except ConnectionLossError as error:
            stays.append(f"the topic {self._topic} stays, which the kit created: {error}")
        return tuple(stays)

    async def restart(self) -> None:
        """As `Target.restart`; the target may come back at another address. Raises `TargetError`."""
        if self._process_control is None:
            raise TargetError("the target cannot be restarted: its profile has no start command")
        await self._look_at_idle("before a restart", BRIEF_WINDOWS)  # which ends what was brought about so far
        for channel in self._channels:
            channel.expect_kill()
        await self._process_control.kill()
        self._pool.fail_all("the target was killed")
        for channel in self._channels:
            channel.record_restart()
        await self._start(self._process_control)

    async def move(self, group: str) -> None:
        """As `Target.move`, once all nodes name another one as the group's coordinator. Raises `TargetError`, and after
        that at once: a command that does not move groups is not tried again."""
        if self._move_command is None:
            raise TargetError("the target cannot move groups: its profile has no move command")
        if self._move_failure:
            raise TargetError(self._move_failure)
        old = await self._await_coordinator(group, None)
        for channel in self._channels:
            channel.record_move("move", {"group": group})
        try:
            await self._move_command.run(group)
            new = await self._await_coordinator(group, old)
        except TargetError as failure:
            self._move_failure = str(failure)
            raise
        for channel in self._channels:
            channel.record_move("moved", {"group": group, "old": old, "new": new})
        self._cluster.replace_brokers(self._cluster.brokers)

    async def _await_coordinator(self, group: str, old: int | None) -> int:
        """Wait until all nodes name the same coordinator of a group, another than `old`, and return it. If some go on
        naming `old`, and the others agree, it is for the judge to say what is wrong. Raises `TargetError`."""
        loop = asyncio.get_running_loop()
        limit = min(self._ready_timeout, MAX_AGREEING_S)
        deadline = loop.time() + limit
        while True:
            named = await self._cluster.find_coordinators((GROUP_KEY, group))
            others = named - {-1, old}
            if others == named and len(named) == 1:
                return others.pop()
            if loop.time() >= deadline:
                break
            await asyncio.sleep(RETRY_DELAY_S)
        if len(others) == 1:
            return others.pop()
        if old is None or not others:
            held = f"node {old} still coordinates" if old in named else "no node coordinates"
            raise TargetError(f"after {limit:g} s {held} group {group!r}; it cannot be moved")
        raise TargetError(f"the nodes name {sorted(others)} as the coordinator of group {group!r}")

    async def _start(self, process_control: ProcessControl) -> Description:
        """Start the target and discover it, with retries: some targets print their address before they serve."""
        self._address = await process_control.start()
        self._bootstrap = (self._address,)
        self._is_started = True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._ready_timeout
        while True:
            try:
                return await self._discover()
            except TargetError:
                if loop.time() >= deadline:
                    raise
            await asyncio.sleep(RETRY_DELAY_S)

    async def close(self) -> None:
        """As `Target.close`."""
        await asyncio.gather(*(channel.close() for channel in tuple(self._channels)))
        await self._pool.close()
        if self._process_control is not None:
            await self._process_control.stop(in_background=self._given_address is None and self._is_started)
            self._is_started = self._given_address is not None
