"""The requests that authenticate a connection: SaslHandshake, then SaslAuthenticate for each message of a mechanism."""

from collections.abc import Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from fencepost.adapters.security.sasl import SaslError, SaslSteps
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
