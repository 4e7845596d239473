"""TLS and SASL: what a profile says reaches every connection, failures take one line, and secrets are shown nowhere."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fencepost.adapters.address import TargetError, format_address
from fencepost.adapters.security.authentication import load_security
from fencepost.adapters.target import Description, TraceBuilder
from fencepost.adapters.wire.connection import ConnectionPool
from fencepost.conformance.classic.protocol import kafka_target
from fencepost.conformance.profile import load_profile
from fencepost.traces.events import Kind
from tests.support.fake_broker import FakeBroker, serve_brokers
from tests.support.guarded_server import CERTIFICATES, Door, guarded_server
from tests.support.security_profiles import KIT, PASSWORD, TOKEN, TRUST, USERS, set_passwords, write_profile

pytestmark = pytest.mark.real_time

TIMEOUT_S = 30.0


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    set_passwords(monkeypatch)


async def open_target(url: str, folder: Path, security: str) -> Description:
    """Open a target and let go of it."""
    async with asyncio.timeout(TIMEOUT_S):
        target = kafka_target(url, load_profile(write_profile(folder, security)))
        try:
            description = await target.open()
            assert await target.is_alive()
            return description
        finally:
            await target.close()


async def refusal_of(door: Door, folder: Path, security: str, scheme: str = "kafka+ssl://") -> str:
    """The complaint about a server behind `door`, with its address taken out."""
    async with guarded_server(door) as address:
        with pytest.raises(TargetError) as caught:
            await open_target(scheme + format_address(*address), folder, security)
        message = str(caught.value)
        assert "\n" not in message
        return message.replace(format_address(*address), "HOST")


# --- what works


@pytest.mark.parametrize(
    "mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"], ids=["plain", "scram-256", "scram-512"]
)
@pytest.mark.parametrize("scheme", ["kafka+ssl://", "kafka://", ""])
async def test_a_password(scheme: str, mechanism: str, tmp_path: Path) -> None:
    uses_tls = scheme == "kafka+ssl://"
    door = Door("broker" if uses_tls else None, mechanisms=(mechanism,), users=USERS)
    security = f"mechanism = '{mechanism}'\n" + PASSWORD + (TRUST if uses_tls else "")
    async with guarded_server(door) as address:
        host = format_address(*address)
        description = await open_target(scheme + host, tmp_path, security)
    assert description.name == (scheme or "kafka://") + host
    assert not {"SaslHandshake", "SaslAuthenticate"} & set(description.versions)
    assert door.sessions > 1 and set(door.attempts) == {mechanism}


async def test_a_token_from_a_command(tmp_path: Path) -> None:
    (tmp_path / "count").touch()
    script = tmp_path / "print-token"
    script.write_text(f"#!/bin/sh\necho x >> count\necho {TOKEN}\necho noise >&2\n")
    script.chmod(0o755)
    door = Door("broker", mechanisms=("OAUTHBEARER",), token=TOKEN)
    async with guarded_server(door) as address:
        security = TRUST + "mechanism = 'OAUTHBEARER'\ntoken_command = './print-token'"
        await open_target("kafka+ssl://" + format_address(*address), tmp_path, security)
    assert door.sessions > 1
    assert (tmp_path / "count").read_text() == "x\n"


async def test_tls_alone_and_by_the_profile(tmp_path: Path) -> None:
    async with guarded_server(Door("broker")) as address:
        description = await open_target(format_address(*address), tmp_path, f"tls = true\n{TRUST}")
        assert description.name == "kafka+ssl://" + format_address(*address)


@pytest.mark.parametrize("key", ["plain", "encrypted"])
async def test_a_client_certificate(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_PASSWORD", "open-sesame")
    security = TRUST + KIT
    if key == "encrypted":
        security = security.replace("kit.key", "kit-encrypted.key") + "key_password_env = 'KEY_PASSWORD'\n"
    async with guarded_server(Door("broker", wants_certificate=True)) as address:
        await open_target("kafka+ssl://" + format_address(*address), tmp_path, security)


@pytest.mark.parametrize(
    ("certificate", "switch"),
    [
        ("elsewhere", TRUST + "server_name = 'elsewhere.invalid'"),
        ("elsewhere", TRUST + "verify_hostname = false"),
        ("elsewhere", "verify_certificate = false"),
        ("expired", "verify_certificate = false"),
    ],
)
async def test_what_may_be_switched_off(certificate: str, switch: str, tmp_path: Path) -> None:
    async with guarded_server(Door(certificate)) as address:
        await open_target("kafka+ssl://" + format_address(*address), tmp_path, switch)


async def test_ipv6(tmp_path: Path) -> None:
    try:
        async with guarded_server(Door("broker"), host="::1") as address:
            description = await open_target(f"kafka+ssl://[::1]:{address[1]}", tmp_path, TRUST)
            assert description.name == f"kafka+ssl://[::1]:{address[1]}"
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")


async def test_several_addresses_and_the_first_one_dead(tmp_path: Path) -> None:
    async with guarded_server(Door()) as (host, port):
        description = await open_target(f"kafka://{host}:1,{host}:{port}", tmp_path, "")
        assert description.name == f"kafka://{host}:{port}"


async def test_all_addresses_dead(tmp_path: Path) -> None:
    with pytest.raises(TargetError) as caught:
        await open_target("127.0.0.1:1,localhost:2", tmp_path, "")
    assert str(caught.value) == (
        "kafka://127.0.0.1:1: connection refused; is the broker running? / "
        "kafka://localhost:2: connection refused; is the broker running?"
    )


# --- what fails


@pytest.mark.parametrize(
    ("door", "security", "complaint"),
    [
        (
            Door("broker"),
            f"ca_file = '{CERTIFICATES}/stranger.pem'",
            "its certificate is not trusted (unable to get local issuer certificate); "
            "give the certificate of its authority as [security] ca_file",
        ),
        (
            Door("elsewhere"),
            TRUST,
            "its certificate is not for '127.0.0.1'; "
            "give its name as [security] server_name, or write verify_hostname = false",
        ),
        (Door("expired"), TRUST, "its certificate has expired; renew it"),
        (
            Door("broker", wants_certificate=True),
            TRUST,
            "the target closed the connection; it may want SASL or a client certificate ([security] in a profile)",
        ),
        (Door(), TRUST, "the target closed the connection during the TLS handshake; is this its TLS port?"),
    ],
    ids=["wrong CA", "wrong name", "expired", "hang-up", "plaintext port"],
)
async def test_tls_fails(door: Door, security: str, complaint: str, tmp_path: Path) -> None:
    assert await refusal_of(door, tmp_path, security) == f"kafka+ssl://HOST: {complaint}"


@contextmanager
def tls_listener(context: ssl.SSLContext) -> Iterator[str]:
    """Serves TLS as OpenSSL does, with alerts, which asyncio's servers do not send; nobody gets an answer."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                peer, _ = listener.accept()
                with context.wrap_socket(peer, server_side=True, do_handshake_on_connect=False) as stream:
                    with suppress(OSError):
                        stream.do_handshake()
                    stream.shutdown(socket.SHUT_WR)
                    # What is left unread would have the system reset the connection, and drop the alert.
                    while socket.socket.recv(stream, 1000):
                        pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield format_address(*listener.getsockname())
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("security", "complaint"),
    [
        (TRUST, "it demands a client certificate; give certificate_file and key_file in [security]"),
        (TRUST + KIT, "it refuses the client certificate; check [security] certificate_file"),
    ],
)
async def test_alerts_about_the_client_certificate(
    version: ssl.TLSVersion, security: str, complaint: str, tmp_path: Path
) -> None:
    context = Door("broker").make_context()
    assert context is not None
    context.load_verify_locations(CERTIFICATES / "stranger.pem")
    context.verify_mode, context.maximum_version = ssl.CERT_REQUIRED, version
    with tls_listener(context) as host:
        with pytest.raises(TargetError) as caught:
            await open_target(f"kafka+ssl://{host}", tmp_path, security)
        told = str(caught.value).removeprefix(f"kafka+ssl://{host}: ")
    if version is ssl.TLSVersion.TLSv1_2 and security == TRUST:
        complaint = "it ended the TLS handshake; it may demand a client certificate: certificate_file in [security]"
    assert told == complaint


@pytest.mark.parametrize("security", ["", "mechanism = 'PLAIN'\n" + PASSWORD])
async def test_a_tls_port_in_plaintext(security: str, tmp_path: Path) -> None:
    broker = FakeBroker()
    broker.responses["ApiVersions"] = lambda _: b"\x15\x03\x03\0\x02\x02\x46"
    async with serve_brokers(broker):
        host = f"127.0.0.1:{broker.port}"
        with pytest.raises(TargetError) as caught:
            await open_target(host, tmp_path, security)
    assert str(caught.value) == f"kafka://{host}: speaks TLS; write kafka+ssl://{host}"


@pytest.mark.parametrize(
    ("door", "security", "complaint"),
    [
        (
            Door(mechanisms=("SCRAM-SHA-256", "PLAIN"), users=USERS),
            "mechanism = 'SCRAM-SHA-512'\n" + PASSWORD,
            "the broker does not offer SCRAM-SHA-512; it offers SCRAM-SHA-256, PLAIN: set [security] mechanism",
        ),
        (
            Door(mechanisms=("SCRAM-SHA-256",), users=USERS),
            "mechanism = 'SCRAM-SHA-256'\n" + PASSWORD.replace("DOOR", "WRONG"),
            "SCRAM-SHA-256 authentication failed: Authentication failed during authentication due to invalid "
            "credentials; check the user and the secret that [security] names",
        ),
        (
            Door(mechanisms=("PLAIN",), users=USERS),
            "mechanism = 'PLAIN'\n" + PASSWORD.replace("DOOR", "WRONG"),
            "PLAIN authentication failed: Authentication failed: kit,= with <hidden>; "
            "check the user and the secret that [security] names",
        ),
        (
            Door(mechanisms=("SCRAM-SHA-512",), users=USERS, lie=True),
            "mechanism = 'SCRAM-SHA-512'\n" + PASSWORD,
            "the broker does not keep to SCRAM: its signature is wrong, so it does not know the password; "
            "is this the broker that you mean?",
        ),
        (
            Door(mechanisms=("OAUTHBEARER",), token=TOKEN),
            "mechanism = 'OAUTHBEARER'\ntoken_command = 'echo another'",
            'OAUTHBEARER authentication failed: {"status":"invalid_token"}; '
            "check the user and the secret that [security] names",
        ),
        (
            Door(mechanisms=("OAUTHBEARER",), token=TOKEN),
            "mechanism = 'OAUTHBEARER'\ntoken_command = 'echo two tokens'",
            "[security] token_command: it did not print one token; run it by hand to see why",
        ),
        (
            Door(mechanisms=("OAUTHBEARER",), token=TOKEN),
            "mechanism = 'OAUTHBEARER'\ntoken_command = 'false'",
            "[security] token_command: exit code 1; run it by hand to see why",
        ),
        (
            Door(mechanisms=("OAUTHBEARER",), token=TOKEN),
            "mechanism = 'OAUTHBEARER'\ntoken_command = './nowhere'",
            "[security] token_command: cannot be run: No such file or directory; run it by hand to see why",
        ),
        (
            Door(),
            "mechanism = 'PLAIN'\n" + PASSWORD,
            "the broker offers no SASL; take mechanism out of [security], or use its SASL port",
        ),
        (
            Door(mechanisms=("PLAIN",)),
            "",
            "wants SASL (PLAIN); put its mechanism and credentials into [security] of a profile",
        ),
    ],
)
async def test_sasl_fails(door: Door, security: str, complaint: str, tmp_path: Path) -> None:
    assert await refusal_of(door, tmp_path, security, "kafka://") == f"kafka://HOST: {complaint}"


async def test_who_is_refused_by_one_broker_does_not_try_the_next(tmp_path: Path) -> None:
    door = Door(mechanisms=("PLAIN",), users=USERS)
    security = "mechanism = 'PLAIN'\n" + PASSWORD.replace("DOOR", "WRONG")
    async with guarded_server(door) as first, guarded_server(door) as second:
        with pytest.raises(TargetError, match="authentication failed"):
            await open_target(f"{format_address(*first)},{format_address(*second)}", tmp_path, security)
    assert door.attempts == ["PLAIN"]


# --- sessions that end


async def test_a_connection_is_not_used_after_its_session(tmp_path: Path) -> None:
    door = Door(mechanisms=("PLAIN",), users=USERS, lifetime_ms=3_600_000)
    settings = load_profile(write_profile(tmp_path, "mechanism = 'PLAIN'\n" + PASSWORD)).security
    async with guarded_server(door) as address, asyncio.timeout(TIMEOUT_S):
        pool, loop = ConnectionPool(8, TIMEOUT_S, load_security(settings)), asyncio.get_running_loop()
        try:
            begun = loop.time()
            connection = await pool.acquire(address)
            assert begun + 3060 <= connection.expires_at <= loop.time() + 3060
            pool.release(address, connection)
            assert await pool.acquire(address) is connection
            connection.expires_at = loop.time()
            pool.release(address, connection)
            assert await pool.acquire(address) is not connection
            assert door.sessions == 2
        finally:
            await pool.close()


async def test_short_sessions_disturb_no_schedule(tmp_path: Path) -> None:
    door = Door(mechanisms=("PLAIN",), users=USERS, lifetime_ms=1)
    async with guarded_server(door) as address, asyncio.timeout(TIMEOUT_S):
        profile = load_profile(write_profile(tmp_path, "mechanism = 'PLAIN'\n" + PASSWORD))
        target = kafka_target(format_address(*address), profile)
        try:
            await target.open()
            recorder, sessions = TraceBuilder(lambda: 0), door.sessions
            channel = target.channel(recorder)
            while door.sessions < sessions + 3:
                assert await channel.send("Heartbeat", 3, {"group_id": "g"}).response is not None
            assert not [event for event in recorder.events if event.kind is Kind.FAULT]
        finally:
            await target.close()
