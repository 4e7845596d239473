"""The stage of a scenario for clients: the cluster, the client, and the trace of both."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fencepost.adapters.client.cluster import CLIENT_LABEL, Cue, Fault, InterceptedRequest, ScriptedCluster, refuse
from fencepost.adapters.client.program import (
    UNSUPPORTED,
    Application,
    ClientPlace,
    ClientUnderTest,
    RunningClient,
    ScriptedMember,
)
from fencepost.conformance.scenario.scenario import CheckedScenarios
from fencepost.model.errors import Error, FencepostError
from fencepost.model.wire.codec import Body, DecodedRequest
from fencepost.traces.events import Event, Kind

PARTITIONS = 4
RECORDS = 20
"""In each partition of a topic."""
PATIENCE_S = 10.0
"""How long a scenario waits for what a client does by itself."""
COMMAND_S = 45.0
"""How long a driver may take for a command, and for the poll before it."""
LAST_WORDS_S = 1.0
"""How long what a driver wrote before it ended may take to be read."""
CLOSING_S = 12.0
"""How long a client may take to close."""
START_S = 30.0


class StageBlocked(FencepostError):
    """A scenario cannot go on; the message is the reason."""


class NotShown(StageBlocked):
    """The client does not get to the point of a scenario, and need not; the message is the reason."""


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """What the first scenario has shown of a client: the protocols that it offers, in its order, and its timeouts in
    milliseconds."""

    protocols: tuple[str, ...] = ("range",)
    session_timeout: int = 0
    rebalance_timeout: int = 0
    is_static: bool = False


@dataclass(slots=True)
class ClientStage:
    """A scenario under way. `start_seconds` are what the client may take to its first JoinGroup."""

    cluster: ScriptedCluster
    subject: ClientUnderTest
    place: ClientPlace
    facts: ClientFacts = ClientFacts()
    start_seconds: float = START_S
    running: RunningClient | None = None
    ended: "asyncio.Task[int] | None" = None
    tasks: list["asyncio.Task[Any]"] = field(default_factory=list)
    wants_end: bool = False
    has_ended_early: bool = False
    """Whether the client ended before it was asked to."""

    # -- the client -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the client. Raises `TargetError`."""
        await self.cluster.create_topic(self.place.topic, PARTITIONS, RECORDS)
        self.running = await self.subject.start(self.place, self.cluster)
        self.ended = asyncio.ensure_future(self._watch(self.running))

    async def start_if_needed(self) -> None:
        """Start the client if that has not been done. Raises `TargetError`."""
        if self.running is None:
            await self.start()

    @property
    def application(self) -> Application:
        """The application that drives the client; only scenarios that need a driver may ask for it."""
        assert self.running is not None and self.running.application is not None
        return self.running.application

    async def do(self, command: str, **fields: Any) -> None:
        """Have the application do something. Raises `NotShown` if its driver cannot, `StageBlocked` if it ends."""
        assert self.ended is not None
        doing = asyncio.ensure_future(self.application.do(command, **fields))
        try:
            await asyncio.wait([doing, self.ended], timeout=COMMAND_S, return_when=asyncio.FIRST_COMPLETED)
            if self.ended.done():
                await asyncio.wait([doing], timeout=LAST_WORDS_S)
            if not doing.done():
                late = "the program ended before it could" if self.ended.done() else f"in {COMMAND_S:g} s it could not"
                raise StageBlocked(f"{late} {command}")
        finally:
            doing.cancel()
        result = doing.result()
        if result.get("error") == UNSUPPORTED:
            raise NotShown(f"the driver cannot {command}")

    async def _watch(self, running: RunningClient) -> int:
        code = await running.wait()
        self.has_ended_early = not self.wants_end
        self.cluster.annotate("program", {"state": "ended", "code": code})
        return code

    async def ask_to_end(self) -> None:
        """Have the client close, and wait until it has ended; a client that does not is killed later."""
        assert self.running is not None and self.ended is not None
        self.wants_end = True
        self.cluster.annotate("program", {"state": "asked to end"})
        self.running.ask_to_end()
        await asyncio.wait([self.ended], timeout=CLOSING_S)

    async def close(self) -> None:
        """End everything that the scenario has started."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if self.ended is not None:
            self.ended.cancel()
            await asyncio.gather(self.ended, return_exceptions=True)
        if self.running is not None:
            await self.running.kill()
        await self.cluster.brokers.close()

    # -- waiting --------------------------------------------------------------------------------------------------

    def mark(self) -> int:
        """The number of the next event."""
        return len(self.cluster.events)

    async def wait_for(
        self, what: str, sees: Callable[[Event], bool], *, since: int = 0, seconds: float = PATIENCE_S
    ) -> Event:
        """The first event from number `since` on that is seen so. Raises `StageBlocked` if none comes."""
        has_ended = self.ended is not None and self.ended.done()
        found = await self.cluster.wait_for(
            lambda event: sees(event) or is_unexpected_end(event, self.wants_end),
            0 if has_ended else seconds,
            since=since,
        )
        if found is not None and sees(found):
            return found
        if found is not None or has_ended:
            raise StageBlocked(f"the program ended before {what} came")
        raise StageBlocked(f"no {what} came within {seconds:g} s")

    async def request(
        self,
        api: str,
        *,
        since: int = 0,
        seconds: float = PATIENCE_S,
        where: Callable[[Event], bool] = lambda event: True,
    ) -> Event:
        """The client's next request to an API. Raises `StageBlocked`."""
        return await self.wait_for(
            api, lambda event: is_request(event, api) and where(event), since=since, seconds=seconds
        )

    async def response(
        self, api: str, error: Error = Error.NONE, *, since: int = 0, seconds: float = PATIENCE_S
    ) -> Event:
        """The next response with this error to a request of the client. Raises `StageBlocked`."""

        def sees(event: Event) -> bool:
            is_own = event.kind is Kind.RESPONSE and event.api == api and event.member == CLIENT_LABEL
            return is_own and event.body.get("error_code", 0) == error

        return await self.wait_for(f"response {error.name} to {api}", sees, since=since, seconds=seconds)

    async def become_stable(self, *, since: int = 0, seconds: float | None = None) -> Event:
        """The next response to SyncGroup with an assignment. Raises `StageBlocked`."""
        if seconds is None:
            seconds = self.start_seconds if since == 0 else PATIENCE_S
        return await self.response("SyncGroup", since=since, seconds=seconds)

    async def start_and_become_stable(self) -> Event:
        """Start the client, and wait until it has an assignment."""
        await self.start()
        await self.request("JoinGroup", seconds=self.start_seconds)
        return await self.become_stable()

    async def watch(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    async def watch_request(self, api: str, *, since: int, seconds: float) -> None:
        """Wait until the client sends a request, at the longest so many seconds. Whether it has to is the judge's
        affair."""
        with suppress(StageBlocked):
            await self.request(api, since=since, seconds=seconds)

    async def watch_rejoin(self, since: int) -> None:
        """Wait until the client joins again, as long as it may take, and is stable again. Whether it has to is the
        judge's affair, so that nothing is raised."""
        patience = min(max(PATIENCE_S, self.facts.rebalance_timeout / 1000 + 2), 2 * PATIENCE_S)
        try:
            await self.request("JoinGroup", since=since, seconds=patience)
            await self.become_stable(since=since)
        except StageBlocked:
            return
        await self.watch(0.5)

    # -- what the cluster does ------------------------------------------------------------------------------------

    def refuse(self, api: str, error: Error, *, times: int = 1, **options: Any) -> Cue:
        """Have the next requests to an API refused."""
        return self.play(api, refuse(error), f"the next {api} gets {error.name}", times=times, **options)

    def play(self, api: str, fault: Fault, note: str, *, times: int = 1, **options: Any) -> Cue:
        """Have a fault happen to the next requests to an API."""
        return self.cluster.script.add(api, fault, note, times=times, **options)

    def evict(self, api: str) -> Cue:
        """Have the coordinator forget the client when its next request to an API comes."""

        async def respond(intercepted: InterceptedRequest) -> Body | None:
            await self.remove(str(intercepted.request.body["member_id"]))
            return await intercepted.pass_on()

        return self.play(api, respond, f"the coordinator forgets the member before its {api}", matches=has_member_id)

    async def remove(self, member_id: str) -> None:
        """Have the coordinator remove a member."""
        row = {"member_id": member_id, "group_instance_id": None}
        await self.cluster.brokers.ask("LeaveGroup", 3, {"group_id": self.place.group, "members": [row]})

    def add_member(self, label: str = "B") -> ScriptedMember:
        """A second member, which offers what the client offers."""
        return ScriptedMember(self.cluster, label, self.place.group, [self.place.topic], self.facts.protocols)

    def start_task(self, work: Any) -> "asyncio.Task[Any]":
        """Do something beside the scenario, at the longest until its end."""
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self.tasks.append(task)
        return task


def is_request(event: Event, api: str) -> bool:
    """Whether an event is a request of the client to an API."""
    return event.kind is Kind.REQUEST and event.api == api and event.member == CLIENT_LABEL


def is_unexpected_end(event: Event, is_wanted: bool) -> bool:
    """Whether the client has ended without being asked."""
    return event.kind is Kind.INTERNAL and event.api == "program" and event.body["state"] == "ended" and not is_wanted


def has_member_id(request: DecodedRequest) -> bool:
    """Whether a request carries a member id."""
    return bool(request.body.get("member_id"))


ClientScenarioFamily: TypeAlias = CheckedScenarios[Callable[[ClientStage], Coroutine[Any, Any, None]]]
"""The scenarios of one module that test a client."""
