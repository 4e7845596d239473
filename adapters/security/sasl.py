"""The SASL mechanisms as generators: each yields the client's messages and is sent the broker's.

A generator that returns has authenticated the broker too, as far as its mechanism does. It raises `SaslError` for a
broker that does not keep to the mechanism. No clock, no sockets: the nonce is an argument.

Names and passwords are sent as they are, in UTF-8. RFC 5802 wants them prepared by SASLprep; Apache Kafka and its
clients leave that out, and a prepared password would not match what Kafka has stored.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Generator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from fencepost.adapters.security.secret import Secret

SaslSteps: TypeAlias = Generator[bytes, bytes, None]

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
SCRAM_HASHES: Mapping[str, str] = MappingProxyType({"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"})
MECHANISMS = (PLAIN, *SCRAM_HASHES, OAUTHBEARER)

MIN_ITERATIONS = 4096
"""The least of RFC 7677, and of Apache Kafka."""
MAX_ITERATIONS = 1_000_000
"""About a second of work."""
GS2_HEADER = "n,,"
"""No channel binding, no other identity to act as."""


class SaslError(Exception):
    """Authentication failed. `advice` says what the user can do."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice


def plain_steps(user: str, password: Secret) -> SaslSteps:
    """PLAIN, RFC 4616."""
    yield f"\0{user}\0{password.reveal()}".encode()


def oauth_bearer_steps(token: Secret) -> SaslSteps:
    """OAUTHBEARER, RFC 7628. A broker that refuses the token says why, and is sent one more message before it fails."""
    if (yield f"{GS2_HEADER}\1auth=Bearer {token.reveal()}\1\1".encode()):
        yield b"\1"
        raise SaslError("the broker refuses the token and accepts the connection", "tell the broker's makers")


class ScramKeys:
    """The keys that a password gives with the salt and the iterations of a broker, which are worked out once."""

    def __init__(self, hash_name: str, password: Secret) -> None:
        self.hash_name = hash_name
        self._password = password
        self._salted: dict[tuple[bytes, int], bytes] = {}

    def salt_password(self, salt: bytes, iterations: int) -> bytes:
        """SaltedPassword of RFC 5802."""
        if (salt, iterations) not in self._salted:
            password = self._password.reveal().encode()
            self._salted[salt, iterations] = hashlib.pbkdf2_hmac(self.hash_name, password, salt, iterations)
        return self._salted[salt, iterations]

    def sign(self, key: bytes, text: bytes) -> bytes:
        """HMAC of `text`."""
        return hmac.digest(key, text, self.hash_name)

    def digest(self, data: bytes) -> bytes:
        """H of RFC 5802."""
        return hashlib.new(self.hash_name, data).digest()


def scram_steps(user: str, keys: ScramKeys, nonce: str) -> SaslSteps:
    """SCRAM, RFC 5802 and 7677, without channel binding."""
    name = user.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}"
    server_first = _text_of((yield (GS2_HEADER + first).encode()))
    whole_nonce, salt, iterations = _read_server_first(server_first, nonce)
    final = f"c={base64.b64encode(GS2_HEADER.encode()).decode()},r={whole_nonce}"
    signed = f"{first},{server_first},{final}".encode()
    salted = keys.salt_password(salt, iterations)
    client_key = keys.sign(salted, b"Client Key")
    signature = keys.sign(keys.digest(client_key), signed)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_final = _text_of((yield f"{final},p={base64.b64encode(proof).decode()}".encode()))
    expected = keys.sign(keys.sign(salted, b"Server Key"), signed)
    _check_server_final(server_final, expected)


def _read_server_first(text: str, nonce: str) -> tuple[str, bytes, int]:
    """The whole nonce, the salt and the iterations of the broker's first message."""
    attributes = _attributes_of(text)
    whole_nonce, salt, iterations = (attributes.get(name, "") for name in "rsi")
    if "m" in attributes or not iterations.isascii() or not iterations.isdigit():
        raise _unusable("its first message is not one of SCRAM")
    if not whole_nonce.startswith(nonce) or whole_nonce == nonce:
        raise _unusable("its nonce does not continue the kit's")
    if not MIN_ITERATIONS <= int(iterations[:9]) <= MAX_ITERATIONS:
        raise _unusable(f"it asks for {iterations[:9]} iterations, and {MIN_ITERATIONS} to {MAX_ITERATIONS} are safe")
    return whole_nonce, _decode_base64(salt), int(iterations)


def _check_server_final(text: str, expected: bytes) -> None:
    attributes = _attributes_of(text)
    if "e" in attributes:
        raise SaslError("the broker refuses the user or the password", "check [security] user and password")
    if not hmac.compare_digest(_decode_base64(attributes.get("v", "")), expected):
        raise _unusable("its signature is wrong, so it does not know the password")


def _attributes_of(text: str) -> dict[str, str]:
    return {name: value for name, mark, value in (part.partition("=") for part in text.split(",")) if mark}


def _text_of(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise _unusable("its message is not UTF-8") from None


def _decode_base64(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data:
        raise _unusable("its message lacks a part or is not base64")
    return data


def _unusable(reason: str) -> SaslError:
    return SaslError(f"the broker does not keep to SCRAM: {reason}", "is this the broker that you mean?")
