"""The messages between coordinator and consumer, as the handlers see them; `wire` has their bytes.

Attempt numbers, the confirmation in a ping and the offsets of a StopResponse are repairs: in the draft's dialect no
handler reads them, and they do not go over the wire.
"""

from dataclasses import dataclass
from typing import TypeAlias

from fencepost.model.frozen import fast_frozen
from fencepost.model.logic import Token
from fencepost.model.push.interest import NO_INTEREST, Interest

Offsets: TypeAlias = tuple[tuple[Token, int], ...]
"""Partitions with an offset each."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class RegisterRequest:
    """The only request of a consumer; `number` tells its registrations apart, one for each channel."""

    consumer: Token
    number: int = 0
    interest: Interest = NO_INTEREST
    session_timeout_ms: int = 6000
    auto_commit: bool = False


@fast_frozen
@dataclass(frozen=True, slots=True)
class RegisterResponse:
    """Whether the registration is accepted (error 0)."""

    error: int = 0


@fast_frozen
@dataclass(frozen=True, slots=True)
class PingRequest:
    """Are you alive? `retries` counts those before it without a response; `confirmed` is the last ping answered."""

    retries: int = 0
    confirmed: int = 0


@fast_frozen
@dataclass(frozen=True, slots=True)
class PingResponse:
    """I am, and this is how far I am in my partitions."""

    offsets: Offsets = ()


@fast_frozen
@dataclass(frozen=True, slots=True)
class StopRequest:
    """Close the fetchers."""

    attempt: int = 0


@fast_frozen
@dataclass(frozen=True, slots=True)
class StopResponse:
    """The fetchers are closed; the final offsets."""

    attempt: int = 0
    offsets: Offsets = ()


@fast_frozen
@dataclass(frozen=True, slots=True)
class StartRequest:
    """Fetch these partitions, from these offsets if there are any."""

    attempt: int = 0
    partitions: tuple[Token, ...] = ()
    offsets: Offsets = ()


@fast_frozen
@dataclass(frozen=True, slots=True)
class StartResponse:
    """The fetchers are started (error 0), or the request was refused."""

    attempt: int = 0
    error: int = 0


CoordinatorRequest: TypeAlias = PingRequest | StopRequest | StartRequest
ConsumerResponse: TypeAlias = PingResponse | StopResponse | StartResponse
ILLEGAL_STATE, DUPLICATE, TIMEOUT_TOO_SMALL = 1, 2, 3
"""Error codes: the draft gives none a number."""
