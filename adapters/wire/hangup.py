"""The protocol that a listener wants which hangs up on Kafka's requests: told by its bytes, never guessed."""

import asyncio

from fencepost.adapters.address import Address, format_url
from fencepost.adapters.security.authentication import HANDSHAKE_VERSION, UNSUPPORTED_SASL_MECHANISM
from fencepost.adapters.target import TargetError
from fencepost.adapters.wire.admin_client import AdminClient
from fencepost.adapters.wire.connection import ConnectionLoss, ConnectionLossError, LossCause

SECURITY = "put its mechanism and credentials into [security] of a profile"
TLS_HEADS = (b"\x15\x03", b"\x16\x03")
"""The first bytes of TLS: an alert, a handshake."""
HEADS = (
    (b"HTTP/", "speaks HTTP, not Kafka's protocol; check the port"),
    (b"SSH-", "speaks SSH, not Kafka's protocol; check the port"),
)
"""The first bytes of other protocols."""
SASL_TIMEOUT_S = 2.0


class AccessDeniedError(TargetError):
    """The target answers, and TLS or SASL fails."""


def describe_loss(address: Address, loss: ConnectionLoss, *, uses_tls: bool = False) -> TargetError:
    """The `TargetError` that reports a lost connection to the user, by the bytes that came before."""
    url = format_url(address, uses_tls=uses_tls)
    if not uses_tls and loss.head.startswith(TLS_HEADS):
        return TargetError(f"{url}: speaks TLS; write {format_url(address, uses_tls=True)}")
    for head, meaning in HEADS:
        if loss.head.startswith(head):
            return TargetError(f"{url}: {meaning}")
    if uses_tls and loss.cause is LossCause.CLOSED and not loss.advice:
        return TargetError(f"{url}: {loss.reason}; it may want SASL or a client certificate ([security] in a profile)")
    kind = AccessDeniedError if loss.cause is LossCause.DENIED else TargetError
    return kind(f"{url}: {loss.reason}; {loss.advice or loss.cause.value}")


async def explain_hangup(client: AdminClient, address: Address, loss: ConnectionLoss) -> TargetError:
    """As `describe_loss`; a listener that hung up without a word is asked whether it wants SASL."""
    security = client.pool.security
    if loss.cause is LossCause.CLOSED and not loss.head and security.credentials is None:
        mechanisms = await _ask_mechanisms(client, address)
        if mechanisms:
            url = format_url(address, uses_tls=security.uses_tls)
            return TargetError(f"{url}: wants SASL ({', '.join(mechanisms)}); {SECURITY}")
    return describe_loss(address, loss, uses_tls=security.uses_tls)


async def _ask_mechanisms(client: AdminClient, address: Address) -> tuple[str, ...]:
    """The SASL mechanisms that a listener names when asked for an unknown one (KIP-43); none if it wants no SASL."""
    try:
        async with asyncio.timeout(SASL_TIMEOUT_S):
            question = {"mechanism": "NONE"}
            response = await client.request(address, "SaslHandshake", HANDSHAKE_VERSION, question, alone=True)
    except (ConnectionLossError, TimeoutError):
        return ()
    refused = response.body.get("error_code") == UNSUPPORTED_SASL_MECHANISM
    return tuple(response.body.get("mechanisms") or ()) if refused else ()
