"""Finds out what a listener wants that hangs up on Kafka's requests: told by its bytes, never guessed."""

import asyncio

from fencepost.adapters.address import Address, format_url
from fencepost.adapters.target import TargetError
from fencepost.adapters.wire.admin_client import AdminClient
from fencepost.adapters.wire.connection import ConnectionLoss, ConnectionLossError, LossCause

PLAINTEXT = "Fencepost needs a PLAINTEXT listener"
HEADS = (
    (b"\x15\x03", f"speaks TLS; {PLAINTEXT}"),
    (b"\x16\x03", f"speaks TLS; {PLAINTEXT}"),
    (b"HTTP/", "speaks HTTP, not Kafka's protocol; check the port"),
    (b"SSH-", "speaks SSH, not Kafka's protocol; check the port"),
)
"""The first bytes of other protocols."""
SASL_HANDSHAKE = 17
UNSUPPORTED_SASL_MECHANISM = 33
NO_MECHANISM = "NONE"
SASL_TIMEOUT_S = 2.0


def describe_loss(address: Address, loss: ConnectionLoss) -> TargetError:
    """The `TargetError` that reports a lost connection to the user, by the bytes that came before."""
    for head, meaning in HEADS:
        if loss.head.startswith(head):
            return TargetError(f"{format_url(address)}: {meaning}")
    return TargetError(f"{format_url(address)}: {loss.reason}; {loss.cause.value}")


async def explain_hangup(client: AdminClient, address: Address, loss: ConnectionLoss) -> TargetError:
    """As `describe_loss`; a listener that hung up without a word is asked whether it wants SASL."""
    if loss.cause is LossCause.CLOSED and not loss.head:
        mechanisms = await _ask_mechanisms(client, address)
        if mechanisms:
            return TargetError(f"{format_url(address)}: wants SASL ({', '.join(mechanisms)}); {PLAINTEXT}")
    return describe_loss(address, loss)


async def _ask_mechanisms(client: AdminClient, address: Address) -> tuple[str, ...]:
    """The SASL mechanisms that a listener names when asked for an unknown one (KIP-43); none if it wants no SASL."""
    frame = b"".join(
        (
            SASL_HANDSHAKE.to_bytes(2),
            (1).to_bytes(2),
            client.next_id().to_bytes(4),
            (0xFFFF).to_bytes(2),
            len(NO_MECHANISM).to_bytes(2),
            NO_MECHANISM.encode(),
        )
    )
    try:
        connection = await client.pool.open_connection(address)
    except ConnectionLossError:
        return ()
    outcome: asyncio.Future[bytes | ConnectionLoss] = asyncio.get_running_loop().create_future()
    connection.send(frame, outcome.set_result, outcome.set_result)
    try:
        async with asyncio.timeout(SASL_TIMEOUT_S):
            response = await outcome
    except TimeoutError:
        return ()
    finally:
        connection.abort()
    return _read_mechanisms(response) if isinstance(response, bytes) else ()


def _read_mechanisms(frame: bytes) -> tuple[str, ...]:
    """The mechanisms in a SaslHandshake response that refuses one; none in any other."""
    if int.from_bytes(frame[4:6]) != UNSUPPORTED_SASL_MECHANISM:
        return ()
    names, rest = [], frame[10:]
    for _ in range(int.from_bytes(frame[6:10])):
        size = int.from_bytes(rest[:2])
        if len(rest) < 2 + size or not size:
            break
        names.append(rest[2 : 2 + size].decode(errors="replace"))
        rest = rest[2 + size :]
    return tuple(names)
