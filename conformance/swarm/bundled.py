"""Swarms on the bundled coordinator, in this process."""

from collections.abc import Callable

from fencepost.adapters.classic.client.links import MemoryNetwork
from fencepost.adapters.serve.server import Server
from fencepost.conformance.swarm.plan import SwarmPlan
from fencepost.conformance.swarm.run import SwarmOutcome, make_run
from fencepost.model.settings import Settings


async def run_bundled(plan: SwarmPlan, tell: Callable[[str], None]) -> SwarmOutcome:
    """Run a swarm on a server of its own, whose connections need no ports."""
    server = Server(Settings(), None)
    try:
        return await make_run(plan, MemoryNetwork(server.accept), tell, cleans_up=False).run()
    finally:
        await server.close()
