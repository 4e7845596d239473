"""A broker for tests that responds by a table, which may have it misbehave."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from fencepost.adapters.security.authentication import UNSUPPORTED_SASL_MECHANISM
from fencepost.adapters.wire.discovery import MIN_PARTITIONS
from fencepost.model.errors import Error
from fencepost.model.wire.codec import API_KEYS, VERSIONS, DecodedRequest, decode_request, encode_response, fit_body

TOPIC_ID = "5f0c2a5e-0000-4000-8000-000000000001"
DISCONNECT = b""
SILENCE = None

ScriptedResponse: TypeAlias = Mapping[str, Any] | bytes | None
"""A body, or raw bytes to send before hanging up, or nothing."""
Handler: TypeAlias = Callable[[DecodedRequest], ScriptedResponse]


KAFKA_CONFIGS = [
    {"name": "group.min.session.timeout.ms", "value": "6000"},
    {"name": "group.max.session.timeout.ms", "value": "1800000"},
    {"name": "group.initial.rebalance.delay.ms", "value": "3000"},
    {"name": "group.max.size", "value": "2147483647"},
    {"name": "offset.metadata.max.bytes", "value": "4096"},
    {"name": "offsets.retention.minutes", "value": "10080"},
    {"name": "offsets.retention.check.interval.ms", "value": "600000"},
]


class FakeBroker:
    """Serves on its own port. `responses` maps an API to its handler; a request without one ends the connection."""

    def __init__(self, node: int = 0, topic: str = "fencepost") -> None:
        self.node = node
        self.topic = topic
        self.port = 0
        self.peers: list[FakeBroker] = [self]
        self.requests: list[DecodedRequest] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.asked_on: asyncio.StreamWriter | None = None
        """The connection of the last request."""
        self.sasl_mechanisms: tuple[str, ...] = ()
        """What it names in a SaslHandshake; without any, that ends the connection."""
        self.versions = {api: VERSIONS[api] for api in VERSIONS}
        self.responses: dict[str, Handler] = {
            "ApiVersions": self.api_versions,
            "Metadata": self.metadata,
            "FindCoordinator": lambda _: self.coordinator_response(self),
            "OffsetFetch": lambda _: {"error_code": 0, "topics": []},
            "DescribeConfigs": lambda _: {"results": [{"error_code": 0, "configs": KAFKA_CONFIGS}]},
            "CreateTopics": lambda _: {"topics": [{"name": self.topic, "error_code": 36}]},
            "Heartbeat": lambda _: {"error_code": 0},
            "JoinGroup": lambda _: SILENCE,
        }

    def api_versions(self, request: DecodedRequest) -> ScriptedResponse:
        """Every API of the table, in the versions that the kit knows."""
        if request.version > self.versions["ApiVersions"][1]:
            return {"error_code": Error.UNSUPPORTED_VERSION}
        keys = [
            {"api_key": API_KEYS[api], "min_version": low, "max_version": high}
            for api, (low, high) in self.versions.items()
            if api in self.responses or api in ("SyncGroup",)
        ]
        return {"error_code": 0, "api_keys": keys}

    def metadata(self, _: DecodedRequest) -> ScriptedResponse:
        """A Metadata response with all peers and the kit's topic."""
        partitions = [{"partition_index": n, "leader_id": self.node, "error_code": 0} for n in range(MIN_PARTITIONS)]
        return {
            "brokers": [{"node_id": peer.node, "host": "127.0.0.1", "port": peer.port} for peer in self.peers],
            "cluster_id": "test",
            "topics": [{"error_code": 0, "name": self.topic, "topic_id": TOPIC_ID, "partitions": partitions}],
        }

    def coordinator_response(self, peer: "FakeBroker", error: int = 0) -> ScriptedResponse:
        """A FindCoordinator response that names `peer`."""
        where = {"node_id": peer.node, "host": "127.0.0.1", "port": peer.port} if not error else {"node_id": -1}
        return {"error_code": error, **where}

    def refuse_mechanism(self, frame: bytes) -> bytes:
        """The frame of a SaslHandshake response that refuses the mechanism asked for."""
        names = b"".join(len(name).to_bytes(2) + name.encode() for name in self.sasl_mechanisms)
        body = frame[4:8] + UNSUPPORTED_SASL_MECHANISM.to_bytes(2) + len(self.sasl_mechanisms).to_bytes(4) + names
        return len(body).to_bytes(4) + body

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends."""
        self.writers.append(writer)
        try:
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
                if self.sasl_mechanisms and int.from_bytes(frame[:2]) == API_KEYS["SaslHandshake"]:
                    writer.write(self.refuse_mechanism(frame))
                    break
                request = decode_request(frame)
                self.requests.append(request)
                self.asked_on = writer
                handler = self.responses.get(request.api or "")
                reply = handler(request) if handler else DISCONNECT
                if reply is None:
                    continue
                if isinstance(reply, bytes):
                    writer.write(reply)
                    break
                writer.write(encode_frame(request, reply))
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    def requested_apis(self) -> list[str | None]:
        """The APIs of the requests so far."""
        return [request.api for request in self.requests]


def encode_frame(request: DecodedRequest, body: Mapping[str, Any]) -> bytes:
    """The frame of a response to `request`."""
    assert request.api is not None
    fitting = fit_body(request.api + "Response", request.version, body)
    frame = encode_response(request.api, request.version, request.correlation_id, fitting)
    return len(frame).to_bytes(4) + frame


@asynccontextmanager
async def serve_brokers(*brokers: FakeBroker, port: int = 0) -> AsyncIterator[None]:
    """Serve the brokers as one cluster."""
    servers = []
    for broker in brokers:
        broker.peers = list(brokers)
        server = await asyncio.start_server(broker.serve, "127.0.0.1", port)
        broker.port = server.sockets[0].getsockname()[1]
        servers.append(server)
    try:
        yield
    finally:
        for server in servers:
            server.close()
        for broker in brokers:
            for writer in broker.writers:
                writer.close()
        for server in servers:
            await server.wait_closed()
