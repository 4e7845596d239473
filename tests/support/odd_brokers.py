"""Brokers that coordinate as the bundled one does, with one oddity each that the kit has to cope with."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from pathlib import Path

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.responses import join_refused, sync_refused, trim_to_version
from fencepost.adapters.serve.cluster import ServedCluster
from fencepost.adapters.serve.coordination import Node, Request, Response
from fencepost.adapters.serve.server import Disconnect, Server
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.zoo.fault import Fault, FaultFamily, Shipped, Side, instead_of
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import API_KEYS, Body, DecodedRequest, decode_request, encode_response, fit_body

BROKERS: FaultFamily[Settings] = FaultFamily(Side.COORDINATOR, BUNDLED_SETTINGS)
SEEN = "a broker of somebody else"


# -- settings ----------------------------------------------------------------------------------------------------------


@BROKERS.add("hangs-up", SEEN)
@instead_of(ServedCluster.describe_configs)
def hang_up_on_describe_configs(shipped: Shipped[Body], cluster: ServedCluster, body: Body) -> Body:
    """DescribeConfigs is offered, and ends the connection."""
    raise Disconnect("DescribeConfigs")


@BROKERS.add("garbles")
@instead_of(Server._respond)
async def garble_describe_configs(
    shipped: Shipped[Awaitable[bytes | None]], server: Server, frame: bytes, node: Node, client_host: str
) -> bytes | None:
    """DescribeConfigs is answered with bytes that mean nothing."""
    if int.from_bytes(frame[:2]) == API_KEYS["DescribeConfigs"]:
        return frame[4:8] + b"\xfe" * 40
    return await shipped(server, frame, node, client_host)


@BROKERS.add("tells-nothing")
@instead_of(Server._handle)
async def offer_no_describe_configs(
    shipped: Shipped[Awaitable[Body | None]], server: Server, request: DecodedRequest, node: Node, client_host: str
) -> Body | None:
    """DescribeConfigs is not offered."""
    body = await shipped(server, request, node, client_host)
    if request.api == "ApiVersions" and body is not None:
        keys = [each for each in body["api_keys"] if each["api_key"] != API_KEYS["DescribeConfigs"]]
        return {**body, "api_keys": keys}
    return body


@BROKERS.add("tells-no-delay")
@instead_of(Server._handle)
async def leave_out_initial_delay(
    shipped: Shipped[Awaitable[Body | None]], server: Server, request: DecodedRequest, node: Node, client_host: str
) -> Body | None:
    """Every setting is told but the initial rebalance delay."""
    body = await shipped(server, request, node, client_host)
    if request.api == "DescribeConfigs" and body is not None:
        (result,) = body["results"]
        told = [each for each in result["configs"] if "initial" not in each["name"]]
        return {**body, "results": [{**result, "configs": told}]}
    return body


# -- groups ------------------------------------------------------------------------------------------------------------


@BROKERS.add("generation-alone")
@instead_of(Server._coordinate)
async def give_a_generation_alone(
    shipped: Shipped[Awaitable[Body]], server: Server, request: DecodedRequest, node: Node, client_host: str
) -> Body:
    """A JoinGroup that would have to wait gets a generation of its sender alone."""
    answering = asyncio.ensure_future(shipped(server, request, node, client_host))
    for _ in range(3):
        await asyncio.sleep(0)
    if answering.done() or request.api != "JoinGroup":
        return await answering
    answering.cancel()
    member = request.body["member_id"]
    return {
        "error_code": Error.NONE,
        "generation_id": 1,
        "protocol_type": request.body["protocol_type"],
        "protocol_name": request.body["protocols"][0]["name"],
        "leader": member,
        "skip_assignment": False,
        "member_id": member,
        "members": [{"member_id": member, "group_instance_id": None, "metadata": b""}],
    }


@BROKERS.add("wipes", SEEN)
@instead_of(Coordinator.handle)
def wipe_all_groups(
    shipped: Shipped[list[Response]], coordinator: Coordinator, request: Request, now: int
) -> list[Response]:
    """To delete the group with the empty id, or its offsets, removes every group, and is answered as usual."""
    responses = shipped(coordinator, request, now)
    if (request.api == "DeleteGroups" and "" in request.body["groups_names"]) or (
        request.api == "OffsetDelete" and not request.body["group_id"]
    ):
        coordinator._runtime.groups.clear()
    return responses


@BROKERS.add("dies", SEEN)
@instead_of(Coordinator.handle)
def die_of_no_protocols(
    shipped: Shipped[list[Response]], coordinator: Coordinator, request: Request, now: int
) -> list[Response]:
    """What handles a JoinGroup without protocols ends, and the connection with it."""
    if request.api == "JoinGroup" and not request.body["protocols"]:
        raise Disconnect("JoinGroup without protocols")
    return shipped(coordinator, request, now)


@BROKERS.add("never-parks", SEEN, setting=replace(BUNDLED_SETTINGS, initial_rebalance_delay=0))
@instead_of(Coordinator.handle)
def park_nothing(
    shipped: Shipped[list[Response]], coordinator: Coordinator, request: Request, now: int
) -> list[Response]:
    """A JoinGroup or SyncGroup that would have to wait is answered with REBALANCE_IN_PROGRESS."""
    responses = shipped(coordinator, request, now) + coordinator.advance(now)
    if all(response.handle != request.handle for response in responses):
        error = Error.REBALANCE_IN_PROGRESS
        is_join = request.api == "JoinGroup"
        body = join_refused(error, request.body["member_id"], request.version) if is_join else sync_refused(error)
        body = {"throttle_time_ms": 0} | trim_to_version(request.api, request.version, body)
        responses.append(Response(request.handle, body))
    return responses


ODD_BROKERS: Mapping[str, Fault[Settings]] = {fault.id: fault for fault in BROKERS.faults}
"""The odd brokers by name: the bundled server with a fault each, in the settings that show it."""
DOUBLES = {name: fault for name, fault in ODD_BROKERS.items() if fault.source == SEEN}
"""Those that stand for brokers of somebody else."""


class TopicDeletingServer(Server):
    """Deletes topics, which the server cannot do otherwise; `deleted` has their names."""

    def __init__(self, settings: Settings, storage: Path | None, storage_delay_ms: int = 0) -> None:
        super().__init__(settings, storage, storage_delay_ms)
        self.deleted: list[str] = []

    async def _respond(self, frame: bytes, node: Node, client_host: str) -> bytes | None:
        request = decode_request(frame)
        if request.api != "DeleteTopics":
            return await super()._respond(frame, node, client_host)
        for name in request.body["topic_names"]:
            self.deleted.append(name)
            self._topics._topics.pop(name, None)
        results = [{"name": name, "error_code": Error.NONE} for name in request.body["topic_names"]]
        body = fit_body("DeleteTopicsResponse", request.version, {"responses": results})
        return encode_response("DeleteTopics", request.version, request.correlation_id, body)

    async def _handle(self, request: DecodedRequest, node: Node, client_host: str) -> Body | None:
        body = await super()._handle(request, node, client_host)
        if request.api != "ApiVersions" or body is None:
            return body
        offered = {"api_key": API_KEYS["DeleteTopics"], "min_version": 1, "max_version": 4}
        return {**body, "api_keys": [*body["api_keys"], offered]}
