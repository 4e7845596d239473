"""The ground every scenario stands on: its group, time, versions, sending and marks."""

import asyncio
from collections.abc import Awaitable, Callable

from fencepost.adapters.target import Channel, Description, SendOptions, TraceBuilder
from fencepost.conformance.scenario.actors import RESPONSE_TIMEOUT_MS, Blocked, Call, Check, Unsupported
from fencepost.model.wire.codec import fit_body
from fencepost.traces.events import Body, Kind


class RequestSender:
    """One scenario's group id, its clock and its way to the target."""

    def __init__(
        self,
        description: Description,
        channel: Channel,
        recorder: TraceBuilder,
        group: str,
        *,
        grace: int = 0,
        restart: Callable[..., Awaitable[None]] | None = None,
    ) -> None:
        self.grace = grace
        self.description = description
        self.settings = description.settings
        self.topic = description.topic
        self.group = group
        self.channel = channel
        self.recorder = recorder
        self.checks: list[Check] = []
        self.share: int | None = None
        """How much of the next requests is sent before their connections are cut, in percent; None if they are not."""
        self.restart_hook = restart
        topics: dict[str, Body] = {"topics": {description.topic: 4}}
        if description.topic_id is not None:
            topics["ids"] = {description.topic: description.topic_id}
        recorder.record(Kind.INTERNAL, "topics", 0, topics)

    # --- time ---------------------------------------------------------------------------------------------------

    @property
    def initial_delay(self) -> int:
        """The initial rebalance delay."""
        return self.settings.initial_rebalance_delay

    @property
    def session_timeout(self) -> int:
        """A session timeout that is short and allowed, and longer than a round takes."""
        return max(self.settings.min_session_timeout, 1_500)

    @property
    def long_session_timeout(self) -> int:
        """A session timeout that outlasts the scenario: its member may be silent."""
        return min(max(self.session_timeout, 30_000), self.settings.max_session_timeout)

    @property
    def rebalance_timeout(self) -> int:
        """A rebalance timeout that is short, and long enough for members that come back."""
        return max(2 * self.session_timeout, 4_000)

    @property
    def short_pause(self) -> int:
        """A while: long enough that what should happen at once has happened."""
        return 150

    @property
    def now_ms(self) -> int:
        """Milliseconds since the trace began."""
        return self.recorder.now()

    async def sleep(self, milliseconds: int) -> None:
        """Let time pass."""
        await asyncio.sleep(milliseconds / 1000)

    async def sleep_past(self, milliseconds: int) -> None:
        """Let a deadline so far ahead pass for certain: the judge grants the target its grace, twice over."""
        await self.sleep(milliseconds + 2 * self.grace + self.short_pause)

    # --- what the target offers ---------------------------------------------------------------------------------

    def highest_version(self, api: str, at_least: int = 0, at_most: int = 99) -> int:
        """The highest version within bounds that the target and the kit know."""
        lowest, highest = self.description.versions.get(api, (0, -1))
        best = min(highest, at_most)
        if best < max(lowest, at_least):
            wanted = f"{at_least} to {at_most}" if at_most < 99 else f"{at_least} or later"
            raise Unsupported(f"{api} version {wanted}" if highest >= 0 else api)
        return best

    def require(self, condition: bool, reason: str) -> None:
        """The scenario cannot go on unless this holds."""
        if not condition:
            raise Blocked(reason)

    # --- sending ------------------------------------------------------------------------------------------------

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
        """Send any request, in the highest version unless one is given; fields that it does not have are left out."""
        number = self.highest_version(api) if version is None else self.highest_version(api, version, version)
        carried = fit_body(f"{api}Request", number, body)
        exchange = self.channel.send(api, number, carried, SendOptions(member, client_id, broker, self.share))
        return Call(api, number, exchange, timeout)

    def check(
        self, requirement: str, call: Call, *fields: str, reached: bool = True, note: str = "", unusual: str = ""
    ) -> None:
        """Mark the answer of a call as evidence of a requirement.

        The judge passes the evidence if the model allows the answer. `fields` limits it to differences in these
        fields of a response ("error", "generation", "members", "time", ...). `reached` says whether the
        schedule got to the point the requirement is about; if not, it counts as not observed, never as a failure.
        `unusual` says what the schedule itself saw of an allowed answer that is not as it should be, if anything.
        """
        self.checks.append(Check(requirement, call, fields, reached, note, unusual))

    def record_checks(self) -> None:
        """Put the marks into the trace, behind the answers they speak of."""
        for mark in self.checks:
            request = mark.call.exchange.request
            if request is not None:
                body = {
                    "requirement": mark.requirement,
                    "fields": list(mark.fields),
                    "met": mark.reached,
                    "note": mark.note,
                    **({"unusual": mark.unusual} if mark.unusual else {}),
                }
                self.recorder.record(Kind.INTERNAL, "evidence", 0, body, of=request.sequence)
