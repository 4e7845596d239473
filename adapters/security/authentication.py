"""The requests that authenticate a connection: SaslHandshake, then SaslAuthenticate for each message of a mechanism."""

import asyncio
import os
import re
import secrets
import ssl
from collections.abc import Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from fencepost.adapters.address import Address
from fencepost.adapters.security.settings import (
    OAUTHBEARER,
    PLAIN,
    SCRAM_HASHES,
    SaslError,
    SaslSteps,
    ScramKeys,
    Secret,
    SecretSource,
    SecurityError,
    SecuritySettings,
    oauth_bearer_steps,
    plain_steps,
    scram_steps,
)
from fencepost.model.errors import Error
from fencepost.model.wire.codec import API_KEYS, VERSIONS, Body, decode_response, encode_request

CLIENT_ID = "fencepost"
HANDSHAKE_VERSION = 1
"""After version 0 the messages come without a header (KIP-43)."""
UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE = 33, 34
"""Error codes of SaslHandshake."""
SASL_APIS = frozenset({"SaslHandshake", "SaslAuthenticate"})

RENEWAL_SHARE = 0.85
"""The share of a session's lifetime after which it is renewed, as in Apache Kafka's clients."""


@dataclass(frozen=True, slots=True)
class SaslSession:
    """A connection's session: `lifetime_ms` is 0 if it does not end, `version` that of SaslAuthenticate."""

    lifetime_ms: int = 0
    version: int = 0

    @property
    def renew_after_s(self) -> float:
        """After how many seconds to authenticate again."""
        return self.lifetime_ms / 1000 * RENEWAL_SHARE if self.lifetime_ms > 0 else float("inf")


Requests: TypeAlias = Generator[tuple[str, int, Body], Body, SaslSession]
"""Yields API, version and body of each request, is sent the body of its response, and returns the session."""


def authentication_requests(mechanism: str, steps: SaslSteps, *, version: int | None = None) -> Requests:
    """The requests of one authentication, which asks for the broker's versions first if it does not get the `version`
    of SaslAuthenticate. Raises `SaslError`."""
    if version is None:
        version = _common_version((yield "ApiVersions", 0, {}))
    offer = yield "SaslHandshake", HANDSHAKE_VERSION, {"mechanism": mechanism}
    _check_handshake(mechanism, offer)
    message = next(steps)
    while True:
        answer = yield "SaslAuthenticate", version, {"auth_bytes": message}
        _check_answer(mechanism, answer)
        try:
            message = steps.send(answer.get("auth_bytes") or b"")
        except StopIteration:
            return SaslSession(answer.get("session_lifetime_ms", 0), version)


async def run_authentication(
    requests: Requests, exchange: Callable[[bytes], Awaitable[bytes]], ids: Iterator[int]
) -> SaslSession:
    """Carry out an authentication and return its session; `exchange` sends the frame of a request and returns that of
    its response. `ids` are correlation ids. Raises `SaslError`, and as `exchange`."""
    answer: Body | None = None
    while True:
        try:
            api, version, body = next(requests) if answer is None else requests.send(answer)
        except StopIteration as end:
            session: SaslSession = end.value
            return session
        frame = await exchange(encode_request(api, version, next(ids), CLIENT_ID, body))
        answer = decode_response(api, version, frame).body


def _common_version(offered: Body) -> int:
    """The highest version of SaslAuthenticate that broker and kit share."""
    ranges: dict[Any, Any] = {row.get("api_key"): row for row in offered.get("api_keys") or ()}
    found = ranges.get(API_KEYS["SaslAuthenticate"])
    if API_KEYS["SaslHandshake"] not in ranges or found is None:
        raise SaslError("the broker offers no SASL", "take mechanism out of [security], or use its SASL port")
    return int(min(found.get("max_version", 0), VERSIONS["SaslAuthenticate"][1]))


def _check_handshake(mechanism: str, offer: Body) -> None:
    error = offer.get("error_code")
    if error == UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(map(str, offer.get("mechanisms") or ())) or "none"
        raise SaslError(f"the broker does not offer {mechanism}", f"it offers {offered}: set [security] mechanism")
    if error == ILLEGAL_SASL_STATE:
        raise SaslError("this port wants no SASL", "take mechanism out of [security], or use its SASL port")
    if error != Error.NONE:
        raise SaslError(f"the broker answers SaslHandshake with error {error}", "does it support SASL?")


def _check_answer(mechanism: str, answer: Body) -> None:
    error = answer.get("error_code")
    if error != Error.NONE:
        told = " ".join(str(answer.get("error_message") or f"error {error}").split())
        raise SaslError(
            f"{mechanism} authentication failed: {told}", "check the user and the secret that [security] names"
        )


# --- What connections need, made of the settings of a profile: a TLS context, and credentials with their secrets.

TOKEN_TIMEOUT_S = 60.0
MAX_TOKEN_AGE_S = 60.0
"""Seconds for which a token is used on further connections."""
MAX_SECRET_BYTES = 64 * 1024
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")


class Credentials(Protocol):
    """Who the kit is to a broker."""

    @property
    def mechanism(self) -> str:
        """The name of the SASL mechanism."""

    async def begin(self) -> SaslSteps:
        """The steps of a new authentication. Raises `SaslError`."""

    def hide_in(self, text: str) -> str:
        """`text` without the secret."""


class PasswordCredentials:
    """A user and a password, for PLAIN and SCRAM."""

    def __init__(self, mechanism: str, user: str, password: Secret) -> None:
        self.mechanism = mechanism
        self._user = user
        self._password = password
        self._keys = ScramKeys(SCRAM_HASHES[mechanism], password) if mechanism != PLAIN else None

    async def begin(self) -> SaslSteps:
        """As `Credentials.begin`."""
        if self._keys is None:
            return plain_steps(self._user, self._password)
        return scram_steps(self._user, self._keys, secrets.token_urlsafe(24))

    def hide_in(self, text: str) -> str:
        """As `Credentials.hide_in`."""
        return self._password.hide_in(text)


class TokenCredentials:
    """A command that prints a token for OAUTHBEARER. It runs in `folder`, without a shell."""

    mechanism = OAUTHBEARER

    def __init__(self, command: tuple[str, ...], folder: Path) -> None:
        self._command = command
        self._folder = folder
        self._token = Secret("")
        self._renew_at = float("-inf")
        self._running: asyncio.Lock | None = None

    async def begin(self) -> SaslSteps:
        """As `Credentials.begin`; the last token is used again while it is young."""
        self._running = self._running or asyncio.Lock()
        async with self._running:
            now = asyncio.get_running_loop().time()
            if now >= self._renew_at:
                self._token = Secret(await self._print_token())
                self._renew_at = now + MAX_TOKEN_AGE_S
        return oauth_bearer_steps(self._token)

    def hide_in(self, text: str) -> str:
        """As `Credentials.hide_in`."""
        return self._token.hide_in(text)

    async def _print_token(self) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                cwd=self._folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            raise _token_error(f"cannot be run: {error.strerror}") from None
        try:
            async with asyncio.timeout(TOKEN_TIMEOUT_S):
                out, _ = await process.communicate()
        except TimeoutError:
            raise _token_error(f"not finished after {TOKEN_TIMEOUT_S:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise _token_error(f"exit code {process.returncode}")
        token = out.decode(errors="replace").strip()
        if _TOKEN.fullmatch(token) is None:
            raise _token_error("it did not print one token")
        return token


def _token_error(reason: str) -> SaslError:
    # What the command says is not repeated: it may hold the token.
    return SaslError(f"[security] token_command: {reason}", "run it by hand to see why")


@dataclass(frozen=True, slots=True)
class Security:
    """How connections to a cluster are made. `tls` is None for plaintext, `credentials` for no SASL."""

    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    credentials: Credentials | None = None
    has_certificate: bool = False

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.tls is not None

    def connection_options(self, address: Address) -> dict[str, Any]:
        """The arguments of asyncio's functions that connect to `address`."""
        if self.tls is None:
            return {}
        return {"ssl": self.tls, "server_hostname": self.server_name or address[0].partition("%")[0]}

    async def authenticate(
        self,
        exchange: Callable[[bytes], Awaitable[bytes]],
        *,
        ids: Iterator[int] | None = None,
        version: int | None = None,
    ) -> SaslSession:
        """Authenticate a connection and return its session; `exchange` sends the frame of a request over it and returns
        that of its response. `ids` are correlation ids, `version` is that of SaslAuthenticate if it is known. Raises
        `SaslError`, and as `exchange`."""
        credentials = self.credentials
        if credentials is None:
            return SaslSession()
        try:
            steps = await credentials.begin()
            requests = authentication_requests(credentials.mechanism, steps, version=version)
            return await run_authentication(requests, exchange, ids or count(1))
        except SaslError as error:
            raise SaslError(credentials.hide_in(error.reason), error.advice) from None


PLAINTEXT = Security()
"""Neither TLS nor SASL."""


def load_security(settings: SecuritySettings, *, wants_tls: bool = False) -> Security:
    """What connections need, with files read and secrets resolved. TLS is used if an address `wants_tls` or the
    settings say so. Raises `SecurityError`."""
    uses_tls = wants_tls or settings.tls
    if not uses_tls and (settings.ca_file or settings.certificate_file or settings.server_name):
        raise SecurityError("[security]: keys of TLS, but no TLS; write tls = true, or kafka+ssl:// before the address")
    return Security(
        tls=_make_context(settings) if uses_tls else None,
        server_name=settings.server_name,
        credentials=_load_credentials(settings),
        has_certificate=settings.certificate_file is not None,
    )


def _load_credentials(settings: SecuritySettings) -> Credentials | None:
    if settings.mechanism is None:
        return None
    if settings.mechanism == OAUTHBEARER:
        return TokenCredentials(settings.token_command, settings.folder)
    assert settings.password is not None
    return PasswordCredentials(settings.mechanism, settings.user, _read_secret(settings.password))


def _read_secret(source: SecretSource) -> Secret:
    """The secret; the variable's name is not repeated either, for some will have written the secret there."""
    where = f"[security] {source.key}"
    if source.path is None:
        text = os.environ.get(source.variable, "")
        if not text:
            raise SecurityError(f"{where}: there is no such environment variable, or it is empty; export it")
        return Secret(text)
    try:
        with source.path.open(encoding="utf-8") as file:
            text = file.read(MAX_SECRET_BYTES).removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise SecurityError(f"{where}: {source.path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SecurityError(f"{where}: {source.path}: not a text in UTF-8") from None
    if not text or "\0" in text:
        raise SecurityError(f"{where}: {source.path}: empty, or not a text")
    return Secret(text)


def _make_context(settings: SecuritySettings) -> ssl.SSLContext:
    context = _trusting(settings.ca_file)
    if settings.certificate_file:
        _load_certificate(context, settings, settings.certificate_file)
    if not (settings.verify_hostname and settings.verify_certificate):
        context.check_hostname = False
    if not settings.verify_certificate:
        context.verify_mode = ssl.CERT_NONE
    return context


def _trusting(ca_file: Path | None) -> ssl.SSLContext:
    """A context that trusts the authorities in a file, or those of the system."""
    try:
        return ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=ca_file)
    except ssl.SSLError:
        raise SecurityError(f"[security] ca_file: {ca_file}: holds no certificate in PEM form") from None
    except OSError as error:
        raise SecurityError(f"[security] ca_file: {ca_file}: {error.strerror}") from None


def _load_certificate(context: ssl.SSLContext, settings: SecuritySettings, certificate: Path) -> None:
    def give_password() -> str:
        # Without a function OpenSSL would ask at the terminal.
        if settings.key_password is None:
            raise SecurityError("[security] key_file: the key has a password; give key_password_env")
        return _read_secret(settings.key_password).reveal()

    for key, path in (("certificate_file", certificate), ("key_file", settings.key_file)):
        if path is not None and not os.access(path, os.R_OK):
            reason = "no permission to read it" if path.exists() else "no such file"
            raise SecurityError(f"[security] {key}: {path}: {reason}")
    try:
        context.load_cert_chain(certificate, settings.key_file, password=give_password)
    except SecurityError:
        raise
    except ssl.SSLError as error:
        reason = "no certificate and key in PEM form"
        if error.reason == "KEY_VALUES_MISMATCH":
            reason = "the key does not belong to the certificate"
        elif settings.key_password is not None:
            reason = "the password of the key is wrong, or the files are not in PEM form"
        raise SecurityError(f"[security] certificate_file: {certificate}: {reason}") from None
    except (OSError, ValueError) as error:
        raise SecurityError(f"[security] certificate_file: {certificate}: cannot be used: {error}") from None


# --- What a failed TLS handshake means to the user.

EXPIRED, NOT_YET_VALID = 10, 9
WRONG_NAMES = frozenset({62, 64})
"""Codes of OpenSSL for a certificate that is valid for other names or addresses."""
REFUSALS = ("BAD_CERTIFICATE", "CERTIFICATE_UNKNOWN", "CERTIFICATE_EXPIRED", "UNKNOWN_CA", "ACCESS_DENIED")
"""Ends of the names of alerts that a broker sends for a certificate."""


def describe_tls_failure(security: Security, host: str, error: OSError) -> tuple[str, str] | None:
    """Reason and advice for what ended a connection that uses TLS; None if TLS has nothing to do with it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _describe_verification(security.server_name or host, error)
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return _describe_alert(security, error.reason or "")
    if isinstance(error, (ConnectionResetError, ConnectionAbortedError, BrokenPipeError, ssl.SSLEOFError)):
        return ("the target closed the connection during the TLS handshake", "is this its TLS port?")
    return None


def _describe_verification(host: str, error: ssl.SSLCertVerificationError) -> tuple[str, str]:
    if error.verify_code == EXPIRED:
        return ("its certificate has expired", "renew it")
    if error.verify_code == NOT_YET_VALID:
        return ("its certificate is not valid yet", "check the clocks")
    if error.verify_code in WRONG_NAMES:
        advice = "give its name as [security] server_name, or write verify_hostname = false"
        return (f"its certificate is not for {host!r}", advice)
    reason = f"its certificate is not trusted ({error.verify_message})"
    return (reason, "give the certificate of its authority as [security] ca_file")


def _describe_alert(security: Security, reason: str) -> tuple[str, str]:
    if "WRONG_VERSION_NUMBER" in reason or "RECORD_LAYER" in reason:
        return ("it does not speak TLS", "use its TLS port, or write kafka:// and leave out tls")
    demanded = ("it demands a client certificate", "give certificate_file and key_file in [security]")
    if reason.endswith("CERTIFICATE_REQUIRED"):
        return demanded
    if reason.endswith(REFUSALS):
        refused = "it refuses the client certificate"
        return (refused, "check [security] certificate_file") if security.has_certificate else demanded
    if reason.endswith("HANDSHAKE_FAILURE") and not security.has_certificate:
        return ("it ended the TLS handshake", "it may demand a client certificate: certificate_file in [security]")
    alert = reason.replace("_", " ").lower() or "no reason given"
    return (f"the TLS handshake failed ({alert})", "check the TLS versions and ciphers of the broker")
