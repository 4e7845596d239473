"""The bundled server behind TLS and SASL, as a double of brokers that want them."""

import asyncio
import base64
import hashlib
import hmac
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost.adapters.serve.cluster import NODE_ID
from fencepost.adapters.serve.coordination import Node
from fencepost.adapters.serve.server import Disconnect, Server, serve_connection
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import API_KEYS, decode_request, decode_response, encode_response

CERTIFICATES = Path(__file__).parent / "certificates"
SETTINGS = Settings(min_session_timeout=100, initial_rebalance_delay=50, max_group_size=7, offsets_partitions=2)
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ILLEGAL_STATE, UNSUPPORTED_MECHANISM, FAILED = 34, 33, 58


@dataclass
class Door:
    """What a server wants of its clients, and what it saw of them. Without `mechanisms` there is no SASL. `lifetime_ms`
    is how long sessions are said to last; `lie` has the server end SCRAM with a wrong signature."""

    certificate: str | None = None
    wants_certificate: bool = False
    mechanisms: tuple[str, ...] = ()
    users: Mapping[str, str] = field(default_factory=dict)
    token: str = ""
    lifetime_ms: int = 0
    lie: bool = False
    attempts: list[str] = field(default_factory=list)
    """The mechanisms that clients chose."""
    connections: int = 0
    """Those that are open."""
    sessions: int = 0
    renewals: int = 0

    def make_context(self) -> ssl.SSLContext | None:
        """The server's side of TLS."""
        if self.certificate is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(CERTIFICATES / f"{self.certificate}.pem", CERTIFICATES / f"{self.certificate}.key")
        if self.wants_certificate:
            context.load_verify_locations(CERTIFICATES / "authority.pem")
            context.verify_mode = ssl.CERT_REQUIRED
        return context


class Refusal(Exception):
    """The client is not let in; the message is told to it."""


class Guard:
    """The state of one connection."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.is_open = not door.mechanisms
        self.mechanism = ""
        self.exchange: Callable[[bytes], tuple[bytes, bool]] | None = None

    async def respond(self, frame: bytes, serve: Callable[[], Awaitable[bytes | None]]) -> bytes | None:
        """Respond to a request, or have the server do so once the client is known."""
        request = decode_request(frame)
        if request.api == "ApiVersions":
            return self._offer_sasl(request.version, await serve())
        if request.api == "SaslHandshake":
            body: Mapping[str, Any] = self._shake_hands(request.body["mechanism"])
        elif request.api == "SaslAuthenticate":
            body = self._authenticate(request.body["auth_bytes"])
        elif not self.is_open:
            raise Disconnect("not authenticated")
        else:
            return await serve()
        kept = body if request.version > 0 else {k: v for k, v in body.items() if k != "session_lifetime_ms"}
        return encode_response(request.api, request.version, request.correlation_id, kept)

    def _offer_sasl(self, version: int, frame: bytes | None) -> bytes | None:
        assert frame is not None
        answer = decode_response("ApiVersions", version, frame)
        if not self.door.mechanisms:
            return frame
        keys = [{"api_key": API_KEYS["SaslHandshake"], "min_version": 0, "max_version": 1}]
        keys.append({"api_key": API_KEYS["SaslAuthenticate"], "min_version": 0, "max_version": 2})
        body = {**answer.body, "api_keys": [*answer.body["api_keys"], *keys]}
        return encode_response("ApiVersions", version, answer.correlation_id, body)

    def _shake_hands(self, mechanism: str) -> Mapping[str, Any]:
        self.door.attempts.append(mechanism)
        if not self.door.mechanisms:
            return {"error_code": ILLEGAL_STATE, "mechanisms": []}
        if mechanism not in self.door.mechanisms:
            return {"error_code": UNSUPPORTED_MECHANISM, "mechanisms": list(self.door.mechanisms)}
        self.mechanism = mechanism
        self.exchange = {"PLAIN": self._plain, "OAUTHBEARER": self._bearer}.get(mechanism, self._scram_first)
        return {"error_code": 0, "mechanisms": list(self.door.mechanisms)}

    def _authenticate(self, message: bytes) -> Mapping[str, Any]:
        if self.exchange is None:
            return {"error_code": ILLEGAL_STATE}
        try:
            answer, is_last = self.exchange(message)
        except Refusal as refusal:
            return {"error_code": FAILED, "error_message": str(refusal)}
        if is_last:
            self.door.renewals += self.is_open
            self.door.sessions += not self.is_open
            self.is_open, self.exchange = True, None
        return {"error_code": 0, "auth_bytes": answer, "session_lifetime_ms": self.door.lifetime_ms * is_last}

    def _plain(self, message: bytes) -> tuple[bytes, bool]:
        _, user, password = message.decode().split("\0")
        if self.door.users.get(user) != password:
            raise Refusal(f"Authentication failed: {user} with {password}")  # rude: it repeats the password
        return b"", True

    def _bearer(self, message: bytes) -> tuple[bytes, bool]:
        if message == b"\1":
            raise Refusal('{"status":"invalid_token"}')
        if message != f"n,,\1auth=Bearer {self.door.token}\1\1".encode():
            return b'{"status":"invalid_token"}', False
        return b"", True

    def _scram_first(self, message: bytes) -> tuple[bytes, bool]:
        bare = message.decode().removeprefix("n,,")
        name, nonce = (part[2:] for part in bare.split(","))
        user = name.replace("=2C", ",").replace("=3D", "=")
        if user not in self.door.users:
            raise Refusal("Authentication failed during authentication due to invalid credentials")
        salt = os.urandom(16)
        first = f"r={nonce}abc,s={base64.b64encode(salt).decode()},i=4096"

        def finish(final: bytes) -> tuple[bytes, bool]:
            return self._scram_final(user, salt, bare, first, final.decode())

        self.exchange = finish
        return first.encode(), False

    def _scram_final(self, user: str, salt: bytes, bare: str, first: str, final: str) -> tuple[bytes, bool]:
        name = HASHES[self.mechanism]
        salted = hashlib.pbkdf2_hmac(name, self.door.users[user].encode(), salt, 4096)
        without_proof, _, proof = final.rpartition(",p=")
        signed = f"{bare},{first},{without_proof}".encode()
        stored = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
        pairs = zip(hmac.digest(stored, signed, name), base64.b64decode(proof), strict=True)
        if hashlib.new(name, bytes(a ^ b for a, b in pairs)).digest() != stored:
            raise Refusal("Authentication failed during authentication due to invalid credentials")
        key = hmac.digest(salted, b"Another Key" if self.door.lie else b"Server Key", name)
        return b"v=" + base64.b64encode(hmac.digest(key, signed, name)), True


class GuardedServer(Server):
    """The bundled server behind a door."""

    door = Door()

    async def listen(self, host: str, port: int) -> None:
        """As `Server.listen`, over TLS if the door says so."""
        self._server = await asyncio.start_server(self.accept, host, port, ssl=self.door.make_context())
        self._arm_timer()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node_id: int = NODE_ID) -> None:
        node = Node(node_id, *writer.get_extra_info("sockname")[:2])
        guard = Guard(self.door)
        conversation = asyncio.create_task(
            serve_connection(
                reader, writer, lambda frame: guard.respond(frame, lambda: self._respond(frame, node, "/double"))
            )
        )
        self._connections.add(conversation)
        self.door.connections += 1
        conversation.add_done_callback(self._forget)

    def _forget(self, conversation: asyncio.Task[None]) -> None:
        self.door.connections -= 1
        self._connections.discard(conversation)


@asynccontextmanager
async def guarded_server(door: Door, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[tuple[str, int]]:
    """Serves behind a door; gives the address."""
    server = GuardedServer(SETTINGS, None)
    server.door = door
    await server.listen(host, port)
    try:
        yield server.address
    finally:
        await server.close()
