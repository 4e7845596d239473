"""What each double does: named functions of the bundled server are replaced, in a process of the double's own."""

from collections.abc import Mapping
from dataclasses import replace

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.messages import Error, Request, Response
from fencepost.adapters.classic.responses import join_refused, sync_refused, trim_to_version
from fencepost.adapters.serve import server
from fencepost.adapters.serve.cluster import Body, ServedCluster
from fencepost.adapters.serve.server import Disconnect
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.zoo.fault import Fault, FaultFamily, Patch, Side
from fencepost.model.settings import Settings

BROKERS: FaultFamily[Settings] = FaultFamily(Side.COORDINATOR, BUNDLED_SETTINGS)
SEEN = "a broker of somebody else"


@BROKERS.add("hangs-up", SEEN)
def hang_up_on_describe_configs(patch: Patch) -> None:
    """DescribeConfigs is offered, and ends the connection."""

    def hang_up(cluster: ServedCluster, body: Body) -> Body:
        raise Disconnect("DescribeConfigs")

    patch.replace(ServedCluster, "describe_configs", hang_up)


class WipingCoordinator(Coordinator):
    """DeleteGroups with an empty id removes every group, and is answered as if it removed that one alone."""

    def handle(self, request: Request, now: int) -> list[Response]:
        """As the bundled coordinator, but for that."""
        responses = super().handle(request, now)
        if request.api == "DeleteGroups" and "" in request.body["groups_names"]:
            self._runtime.groups.clear()
        return responses


class DyingCoordinator(Coordinator):
    """What handles a JoinGroup without protocols ends, and the connection with it."""

    def handle(self, request: Request, now: int) -> list[Response]:
        """As the bundled coordinator, but for that."""
        if request.api == "JoinGroup" and not request.body["protocols"]:
            raise Disconnect("JoinGroup without protocols")
        return super().handle(request, now)


class HastyCoordinator(Coordinator):
    """No request is parked: one that would have to wait is answered with REBALANCE_IN_PROGRESS."""

    def handle(self, request: Request, now: int) -> list[Response]:
        """As the bundled coordinator, but for that."""
        responses = super().handle(request, now) + self.advance(now)
        if all(response.handle != request.handle for response in responses):
            responses.append(refuse_to_wait(request))
        return responses


def refuse_to_wait(request: Request) -> Response:
    """REBALANCE_IN_PROGRESS in response to a JoinGroup or a SyncGroup."""
    error = Error.REBALANCE_IN_PROGRESS
    body = (
        join_refused(error, request.body["member_id"], request.version)
        if request.api == "JoinGroup"
        else sync_refused(error)
    )
    return Response(request.handle, {"throttle_time_ms": 0} | trim_to_version(request.api, request.version, body))


def use_coordinator(patch: Patch, coordinator: type[Coordinator]) -> None:
    """Have the server use this coordinator."""
    patch.replace(server, "KAFKA", replace(server.KAFKA, make_coordinator=coordinator))


@BROKERS.add("wipes", SEEN)
def wipe_all_groups(patch: Patch) -> None:
    """DeleteGroups with an empty id removes every group."""
    use_coordinator(patch, WipingCoordinator)


@BROKERS.add("dies", SEEN)
def die_of_no_protocols(patch: Patch) -> None:
    """A JoinGroup without protocols ends what handles it."""
    use_coordinator(patch, DyingCoordinator)


@BROKERS.add("never-parks", SEEN, setting=replace(BUNDLED_SETTINGS, initial_rebalance_delay=0))
def park_nothing(patch: Patch) -> None:
    """A request that would have to wait is answered with REBALANCE_IN_PROGRESS."""
    use_coordinator(patch, HastyCoordinator)


DOUBLES: Mapping[str, Fault[Settings]] = {fault.id: fault for fault in BROKERS.faults}
"""The doubles by name: the bundled server with a fault each, in the settings that show it."""
