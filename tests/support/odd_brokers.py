"""Brokers that coordinate as the bundled one does, with one oddity each that first contact has to cope with."""

import asyncio
from pathlib import Path

from fencepost.adapters.classic.admin import Node
from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.log import MemoryLog
from fencepost.adapters.serve.server import Disconnect, Server
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import API_KEYS, Body, DecodedRequest, decode_request, encode_response, fit_body


class HangingUpServer(Server):
    """Hangs up on DescribeConfigs."""

    async def _handle(self, request: DecodedRequest, node: Node, client_host: str) -> Body | None:
        if request.api == "DescribeConfigs":
            raise Disconnect("nobody asks that here")
        return await super()._handle(request, node, client_host)


class GarblingServer(Server):
    """Answers DescribeConfigs with bytes that mean nothing."""

    async def _respond(self, frame: bytes, node: Node, client_host: str) -> bytes | None:
        if int.from_bytes(frame[:2]) == API_KEYS["DescribeConfigs"]:
            return frame[4:8] + b"\xfe" * 40
        return await super()._respond(frame, node, client_host)


class ReticentServer(Server):
    """Does not offer DescribeConfigs, and has no size limit of groups within reach."""

    async def _handle(self, request: DecodedRequest, node: Node, client_host: str) -> Body | None:
        body = await super()._handle(request, node, client_host)
        if request.api == "ApiVersions" and body is not None:
            keys = [each for each in body["api_keys"] if each["api_key"] != API_KEYS["DescribeConfigs"]]
            return {**body, "api_keys": keys}
        return body


class DelaylessServer(Server):
    """Tells every setting but the initial rebalance delay."""

    async def _handle(self, request: DecodedRequest, node: Node, client_host: str) -> Body | None:
        body = await super()._handle(request, node, client_host)
        if request.api == "DescribeConfigs" and body is not None:
            (result,) = body["results"]
            told = [each for each in result["configs"] if "initial" not in each["name"]]
            return {**body, "results": [{**result, "configs": told}]}
        return body


class UnparkingServer(ReticentServer):
    """Never parks a JoinGroup: one that has to wait gets a generation of its sender alone."""

    async def _coordinate(self, request: DecodedRequest, node: Node, client_host: str) -> Body:
        answering = asyncio.ensure_future(super()._coordinate(request, node, client_host))
        for _ in range(3):
            await asyncio.sleep(0)
        if answering.done() or request.api != "JoinGroup":
            return await answering
        answering.cancel()
        member = request.body["member_id"]
        protocol = request.body["protocols"][0]["name"]
        return {
            "error_code": Error.NONE,
            "generation_id": 1,
            "protocol_type": request.body["protocol_type"],
            "protocol_name": protocol,
            "leader": member,
            "skip_assignment": False,
            "member_id": member,
            "members": [{"member_id": member, "group_instance_id": None, "metadata": b""}],
        }


class WipingServer(Server):
    """Forgets every group when it is to delete the one with the empty id, or its offsets."""

    async def _handle(self, request: DecodedRequest, node: Node, client_host: str) -> Body | None:
        body = await super()._handle(request, node, client_host)
        if (request.api == "DeleteGroups" and "" in request.body["groups_names"]) or (
            request.api == "OffsetDelete" and not request.body["group_id"]
        ):
            settings = self._cluster.settings
            self._coordinator = Coordinator(
                settings, MemoryLog(), lambda prefix: f"{prefix}-again-{id(request)}", self._topics, now=self._now()
            )
        return body


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
