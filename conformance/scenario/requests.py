"""Sends any request for one group under test, and knows its clock, its target's settings and its versions."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Self

from fencepost.adapters.target import Channel, Description, SendOptions, TraceBuilder
from fencepost.conformance.scenario.actors import RESPONSE_TIMEOUT_MS, Blocked, Call, Check, Unsupported
from fencepost.model.wire.codec import fit_body
from fencepost.traces.events import Body, Kind


class RequestSender:
    """The group id of one scenario, its clock and its channel to the target.

    `grace` is the judge's, in milliseconds; `restart` kills and restarts the target, and `move` has another node
    coordinate a group, where that is possible.
    """

    def __init__(
        self,
        description: Description,
        channel: Channel,
        recorder: TraceBuilder,
        group_id: str,
        *,
        grace: int = 0,
        restart: Callable[..., Awaitable[None]] | None = None,
        move: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self.grace = grace
        self.description = description
        self.settings = description.settings
        self.topic = description.topic
        self.group_id = group_id
        self.channel = channel
        self.recorder = recorder
        self.checks: list[Check] = []
        self.share: int | None = None
        """How much of each request is sent before its connection is cut, in percent; None: requests are sent whole."""
        self.broker: int | None = None
        """The node that gets the requests; None: the coordinator of their group."""
        self.restart_hook = restart
        self.move_hook = move
        topics: dict[str, Body] = {"topics": {description.topic: 4}}
        if description.topic_id is not None:
            topics["ids"] = {description.topic: description.topic_id}
        recorder.record(Kind.INTERNAL, "topics", 0, topics)

    def for_group(self, number: int) -> Self:
        """A sender beside this one for another group, whose id ends in the number; it shares all else."""
        other = copy(self)
        other.group_id = f"{self.group_id}-{number}"
        return other

    # --- time ---------------------------------------------------------------------------------------------------

    @property
    def initial_delay(self) -> int:
        """The initial rebalance delay of the target, in milliseconds."""
        return self.settings.initial_rebalance_delay

    @property
    def session_timeout(self) -> int:
        """A short session timeout that the target allows and that outlasts a rebalance, in milliseconds."""
        return max(self.settings.min_session_timeout, 1_500)

    @property
    def long_session_timeout(self) -> int:
        """A session timeout, in milliseconds, that outlasts a scenario: its member need not heartbeat."""
        return min(max(self.session_timeout, 30_000), self.settings.max_session_timeout)

    @property
    def rebalance_timeout(self) -> int:
        """A short rebalance timeout, in milliseconds, that leaves members enough time to rejoin."""
        return max(2 * self.session_timeout, 4_000)

    @property
    def short_pause(self) -> int:
        """A pause, in milliseconds, in which immediate effects have taken place."""
        return 150

    @property
    def now_ms(self) -> int:
        """Milliseconds since the trace began."""
        return self.recorder.now()

    async def sleep(self, milliseconds: int) -> None:
        """Wait for that long on the clock of the target."""
        await asyncio.sleep(milliseconds / 1000)

    async def sleep_past(self, milliseconds: int) -> None:
        """Wait until a deadline that is `milliseconds` ahead has certainly passed: twice the judge's grace longer."""
        await self.sleep(milliseconds + 2 * self.grace + self.short_pause)

    # --- what the target offers ---------------------------------------------------------------------------------

    def highest_version(self, api: str, at_least: int = 0, at_most: int = 99) -> int:
        """The highest version within the bounds that target and kit support. Raises `Unsupported` if there is none."""
        lowest, highest = self.description.versions.get(api, (0, -1))
        best = min(highest, at_most)
        if best < max(lowest, at_least):
            wanted = f"{at_least} to {at_most}" if at_most < 99 else f"{at_least} or later"
            raise Unsupported(f"{api} version {wanted}" if highest >= 0 else api)
        return best

    def require(self, condition: bool, reason: str) -> None:
        """Raise `Blocked` with the reason unless the condition holds."""
        if not condition:
            raise Blocked(reason)

    # --- sending ------------------------------------------------------------------------------------------------

    @contextmanager
    def sending_to(self, broker: int) -> Iterator[None]:
        """Send the requests of the block to this node, whoever coordinates their group."""
        self.broker = broker
        try:
            yield
        finally:
            self.broker = None

    def send(
        self,
        api: str,
        body: Body,
        *,
        version: int | None = None,
        member: str = "",
        client_id: str = "fencepost",
        broker: int | None = None,
        timeout: int = RESPONSE_TIMEOUT_MS,
    ) -> Call:
        """Send a request in a version (None: the highest), without the fields that this version lacks.

        `timeout`, in milliseconds, limits how long the returned call can be awaited. Raises `Unsupported`.
        """
        number = self.highest_version(api) if version is None else self.highest_version(api, version, version)
        carried = fit_body(f"{api}Request", number, body)
        node = self.broker if broker is None else broker
        exchange = self.channel.send(api, number, carried, SendOptions(member, client_id, node, self.share))
        return Call(api, number, exchange, timeout)
