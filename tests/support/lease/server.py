"""A lease server as a target in this process, random schedules of two clients for it, and the description for runs."""

from collections.abc import Callable
from dataclasses import asdict

from fencepost.adapters.in_process import ImmediateTarget
from fencepost.adapters.target import SendOptions
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.protocol import ProtocolDescription
from fencepost.conformance.run.schedule import Move, RandomMoves, actor_label
from fencepost.traces.events import Body
from tests.support.lease.judge import LeaseProtocol
from tests.support.lease.protocol import HANDLERS, SPECIFICATION, Lease, LeaseStep, Request, expire

TTL_MS = 300


def handle_request(lease: Lease, api: str, body: Body, now: int) -> LeaseStep:
    """Handle a request after the lease has expired, if its deadline has come by `now` (milliseconds)."""
    due = lease.holder is not None and lease.deadline <= now
    return HANDLERS[api](expire(lease).lease if due else lease, Request(**body), now)


def lease_target(handle: Callable[[Lease, str, Body, int], LeaseStep] = handle_request) -> ImmediateTarget:
    """A lease server; a faulty one has another `handle`."""

    def respond(lease: Lease, api: str, body: Body, now: int) -> tuple[Lease, Body]:
        step = handle(lease, api, body, now)
        return step.lease, step.response

    return ImmediateTarget("lease", HANDLERS, respond, Lease())


class LeaseSchedules(RandomMoves):
    """The lease as the schedule engine sees it: clients acquire, renew and write, and time passes."""

    moves = (*(Move(kind, who) for kind in HANDLERS for who in (0, 1)), Move("wait"), Move("wait", 0, (("ms", 100),)))
    wait_ms = 2 * TTL_MS

    async def play_move(self, context: ScenarioContext, move: Move, memory: dict[int, int]) -> None:
        """Send a request, with the token that the client was granted last."""
        client = actor_label(move.who)
        body = asdict(Request("lease", client, memory.get(move.who, 0), TTL_MS))
        response = await context.channel.send(move.kind, 0, body, SendOptions(client)).response
        if response and move.kind == "acquire" and not response["error_code"]:
            memory[move.who] = response["token"]


LEASE = ProtocolDescription(
    SPECIFICATION,
    LeaseProtocol,
    make_schedules=lambda scope: LeaseSchedules(),
    make_bundled=lambda settings: lease_target(),
)
