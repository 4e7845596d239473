"""TLS and SASL: what a profile says reaches every connection, failures take one line, and secrets are shown nowhere."""

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fencepost.adapters.address import format_address
from fencepost.adapters.security.loading import load_security
from fencepost.adapters.security.settings import SecurityError
from fencepost.adapters.target import Description, TargetError, TraceBuilder
from fencepost.adapters.wire.pool import ConnectionPool
from fencepost.conformance.cli import main
from fencepost.conformance.profile import ProfileError, load_profile
from fencepost.conformance.run.remote import kafka_target
from fencepost.traces.events import Kind
from tests.support.fake_broker import FakeBroker, serve_brokers
from tests.support.guarded_server import CERTIFICATES, Door, guarded_server

pytestmark = pytest.mark.real_time

TIMEOUT_S = 30.0
SECRET = "open,sesame=äß"
TOKEN = "eyJhbGciOiJub25lIn0.e30."
USERS = {"kit,=": SECRET}
PASSWORD = "user = 'kit,='\npassword_env = 'DOOR_PASSWORD'\n"
TRUST = f"ca_file = '{CERTIFICATES}/authority.pem'\n"
KIT = f"certificate_file = '{CERTIFICATES}/kit.pem'\nkey_file = '{CERTIFICATES}/kit.key'\n"
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOOR_PASSWORD", SECRET)
    monkeypatch.setenv("WRONG_PASSWORD", "swordfish")


def write_profile(folder: Path, security: str) -> Path:
    path = folder / "profile.toml"
    path.write_text(f"[security]\n{security}", encoding="utf-8")
    return path


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
            "the target closed the connection; it may want TLS (kafka+ssl://) or SASL ([security] in a profile)",
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


# --- profiles


@pytest.mark.parametrize(
    ("security", "complaint"),
    [
        (
            f"password = '{SECRET}'",
            "password: secrets are not written into a profile; name an environment",
        ),
        ("token = 'x'", "token: secrets are not written into a profile; name a command that prints it: token_command"),
        ("ca = 'x'", "ca: unknown key; the keys are tls, ca_file"),
        ("tls = 1", "tls: neither true nor false"),
        ("ca_file = ''", "ca_file: not a text; write it in quotes, not empty"),
        ("user = 'x'", "user: no mechanism; give one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"),
        ("mechanism = 'GSSAPI'", "mechanism: 'GSSAPI' is unknown; the choices are PLAIN, "),
        ("mechanism = 'PLAIN'", "mechanism: PLAIN needs user and password_env or password_file"),
        ("mechanism = 'OAUTHBEARER'", "mechanism: OAUTHBEARER needs token_command"),
        ("mechanism = 'OAUTHBEARER'\ntoken_command = 'x'\nuser = 'u'", "user: not for OAUTHBEARER; leave it out"),
        ("mechanism = 'PLAIN'\ntoken_command = 'x'\n" + PASSWORD, "token_command: not for PLAIN; leave it out"),
        (
            "mechanism = 'PLAIN'\npassword_file = 'x'\n" + PASSWORD,
            "password_env: there is password_file too",
        ),
        ("mechanism = 'OAUTHBEARER'\ntoken_command = '\"'", "token_command: not a command: No closing quotation"),
        ("key_file = 'x'", "key_file: a key without a certificate; give certificate_file too"),
        ("key_password_env = 'x'", "key_password_env: there is no key; give certificate_file too"),
    ],
)
def test_what_is_wrong_in_a_profile(security: str, complaint: str, tmp_path: Path) -> None:
    path = write_profile(tmp_path, security)
    with pytest.raises(ProfileError) as caught:
        load_profile(path)
    assert str(caught.value).startswith(f"{path}: [security] {complaint}")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("security", "complaint"),
    [
        ("ca_file = 'no.pem'", "ca_file: FOLDER/no.pem: No such file or directory"),
        ("ca_file = 'profile.toml'", "ca_file: FOLDER/profile.toml: holds no certificate in PEM form"),
        ("certificate_file = 'no.pem'", "certificate_file: FOLDER/no.pem: no such file"),
        (
            KIT.replace("kit.key", "broker.key"),
            "certificate_file: CERTIFICATES/kit.pem: the key does not belong to",
        ),
        (
            KIT.replace("kit.key", "kit.pem"),
            "certificate_file: CERTIFICATES/kit.pem: no certificate and key",
        ),
        (KIT.replace("kit.key", "kit-encrypted.key"), "key_file: the key has a password; give key_password_env"),
        (
            KIT.replace("kit.key", "kit-encrypted.key") + "key_password_env = 'WRONG_PASSWORD'",
            "certificate_file: CERTIFICATES/kit.pem: the password of the key is wrong, or",
        ),
        (
            "mechanism = 'PLAIN'\nuser = 'u'\npassword_env = 'swordfish'",
            "password_env: there is no such environment variable, or it is empty; export it",
        ),
        (
            "mechanism = 'PLAIN'\nuser = 'u'\npassword_file = 'secret'",
            "password_file: FOLDER/secret: No such file or directory",
        ),
    ],
)
def test_what_is_missing_beside_a_profile(security: str, complaint: str, tmp_path: Path) -> None:
    settings = load_profile(write_profile(tmp_path, security)).security
    with pytest.raises(SecurityError) as caught:
        load_security(settings, wants_tls=True)
    told = str(caught.value).replace(str(tmp_path), "FOLDER").replace(str(CERTIFICATES), "CERTIFICATES")
    assert told.startswith(f"[security] {complaint}")
    assert "swordfish" not in told


def test_keys_of_tls_without_tls(tmp_path: Path) -> None:
    settings = load_profile(write_profile(tmp_path, TRUST)).security
    with pytest.raises(SecurityError, match="keys of TLS, but no TLS; write tls = true, or"):
        load_security(settings)


# --- commands


@contextmanager
def guarded_in_thread(door: Door) -> Iterator[str]:
    """Serves in a thread; gives host and port."""
    address: Future[str] = Future()
    stop: Future[None] = Future()

    async def live() -> None:
        try:
            async with guarded_server(door) as place:
                address.set_result(format_address(*place))
                await asyncio.wrap_future(stop)
        except BaseException as error:
            if not address.done():
                address.set_exception(error)

    thread = threading.Thread(target=asyncio.run, args=(live(),), daemon=True)
    thread.start()
    try:
        yield address.result(10)
    finally:
        stop.set_result(None)
        thread.join(10)
        assert not thread.is_alive()


def shown_secrets(folder: Path, capture: Capture, *kept: Path) -> list[str]:
    """Where a secret is to be read: in what was printed, or in a file that was written."""
    output = capture.readouterr()
    texts = {"stdout": output.out.encode(), "stderr": output.err.encode()}
    texts |= {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path not in kept}
    forms = [secret.encode() for secret in (SECRET, "swordfish", TOKEN)]
    forms += [json.dumps(SECRET).strip('"').encode()]
    return [place for place, data in texts.items() if any(form in data for form in forms)]


@pytest.mark.slow
def test_commands_reach_a_guarded_broker_and_show_no_secret(tmp_path: Path, capsys: Capture) -> None:
    password_file = tmp_path / "password"
    password_file.write_text(f"{SECRET}\n", encoding="utf-8")
    profile = write_profile(
        tmp_path, TRUST + "mechanism = 'SCRAM-SHA-512'\nuser = 'kit,='\npassword_file = 'password'\n"
    )
    door = Door("broker", mechanisms=("PLAIN", "SCRAM-SHA-512"), users=USERS, lifetime_ms=500)
    with guarded_in_thread(door) as host:
        url, out = f"kafka+ssl://{host}", tmp_path / "out"
        options = ["--profile", str(profile), "--only", "HB-05", "--smoke"]
        reports = ["--json", str(tmp_path / "r.json"), "--junit", str(tmp_path / "r.xml"), "--traces", str(out)]
        assert main(["test", url, *options, *reports]) == 0
        assert json.loads((tmp_path / "r.json").read_text())["target"]["name"] == url
        traces = sorted(out.glob("*.jsonl*"))
        assert traces
        assert main(["replay", str(traces[0]), url, "--profile", str(profile)]) == 0
        assert shown_secrets(tmp_path, capsys, password_file) == []
        assert shown_secrets(tmp_path, capsys) == [str(password_file)]  # the search finds what is there


def test_a_refused_secret_is_not_shown(tmp_path: Path, capsys: Capture) -> None:
    door = Door(mechanisms=("PLAIN",), users=USERS)
    profile = write_profile(tmp_path, "mechanism = 'PLAIN'\n" + PASSWORD.replace("DOOR", "WRONG"))
    with guarded_in_thread(door) as host:
        assert main(["test", host, "--profile", str(profile), "--traces", str(tmp_path / "t")]) == 2
        assert main(["record", "--upstream", host, "--profile", str(profile), "-o", str(tmp_path / "t.jsonl")]) == 2
    assert door.attempts == ["PLAIN", "PLAIN"]
    assert shown_secrets(tmp_path, capsys) == []


@pytest.mark.parametrize(
    "words",
    [
        ["test", f"kafka://me:{SECRET}@host:1"],
        ["replay", "trace.jsonl", f"me:{SECRET}@host:1"],
        ["record", "--upstream", f"kafka+ssl://me:{SECRET}@host:1", "-o", "x.jsonl"],
        ["record", "--upstream", "host:1", "--listen", f"me:{SECRET}@host:1", "-o", "x.jsonl"],
    ],
)
def test_an_address_with_a_password_is_refused_without_repeating_it(
    words: list[str], tmp_path: Path, capsys: Capture
) -> None:
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "an address holds no user and no password" in line and "password_env" in line
    assert SECRET not in line and "me:" not in line
