"""The section [security] of a profile:

    [security]
    tls = true                              # as kafka+ssl:// before the address says too
    ca_file = "ca.pem"                      # who may sign the broker's certificate; default: the system's authorities
    certificate_file = "kit.pem"            # the kit's own, where the broker demands one,
    key_file = "kit.key"                    # with its key, unless that is in the same file,
    key_password_env = "KIT_KEY_PASSWORD"   # and the key's password
    server_name = "kafka.example.org"       # the name in the broker's certificate; default: the host of its address
    verify_hostname = true                  # false: any name will do
    verify_certificate = true               # false: any certificate will do
    mechanism = "SCRAM-SHA-512"             # or PLAIN, SCRAM-SHA-256, OAUTHBEARER
    user = "kit"                            # not for OAUTHBEARER
    password_env = "KIT_PASSWORD"           # the environment variable that holds the password
    token_command = "./print-token"         # for OAUTHBEARER: prints a token, whenever one is needed

Passwords are in the environment or in files (`password_file`, `key_password_file`), never in a profile. Files and the
command are relative to the profile's folder.
"""

import base64
import binascii
import hashlib
import hmac
import shlex
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from fencepost.adapters.address import TargetError

# --- Secrets: texts that are sent to a broker and shown nowhere else.

HIDDEN = "<hidden>"


class Secret:
    """A text that has no readable form besides `reveal`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def hide_in(self, text: str) -> str:
        """`text` without the secret, which a broker may repeat in its error messages."""
        return text.replace(self._text, HIDDEN) if self._text else text

    def __repr__(self) -> str:
        return HIDDEN


# --- The SASL mechanisms as generators: each yields the client's messages and is sent the broker's.
#
# A generator that returns has authenticated the broker too, as far as its mechanism does. It raises `SaslError` for a
# broker that does not keep to the mechanism. No clock, no sockets: the nonce is an argument.
#
# Names and passwords are sent as they are, in UTF-8. RFC 5802 wants them prepared by SASLprep; Apache Kafka and its
# clients leave that out, and a prepared password would not match what Kafka has stored.

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


TLS_KEYS = (
    "ca_file",
    "certificate_file",
    "key_file",
    "key_password_env",
    "key_password_file",
    "server_name",
    "verify_hostname",
    "verify_certificate",
)
SASL_KEYS = ("mechanism", "user", "password_env", "password_file", "token_command")
SECURITY_KEYS = ("tls", *TLS_KEYS, *SASL_KEYS)
SECRET_KEYS = ("password", "key_password", "token")
"""Keys that people try, and that would put a secret into a profile."""


class SecurityError(TargetError):
    """TLS or SASL cannot be set up; the message names the key of [security], and no secret."""


@dataclass(frozen=True, slots=True)
class SecretSource:
    """Where a secret is: in the environment `variable`, or in the file `path`. `key` says so in the profile."""

    key: str
    variable: str = ""
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class SecuritySettings:
    """What a profile says about TLS and SASL; it holds no secret. Without a `mechanism` there is no SASL."""

    folder: Path = Path()
    tls: bool = False
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    key_password: SecretSource | None = None
    server_name: str | None = None
    verify_hostname: bool = True
    verify_certificate: bool = True
    mechanism: str | None = None
    user: str = ""
    password: SecretSource | None = None
    token_command: tuple[str, ...] = ()


def read_security(section: Mapping[str, object], folder: Path) -> SecuritySettings:
    """What the section says, with paths from `folder`. Raises `SecurityError` for the first mistake in it."""
    for key in section:
        if key in SECRET_KEYS:
            raise SecurityError(f"[security] {key}: secrets are not written into a profile; {_advice_for(key)}")
        if key not in SECURITY_KEYS:
            raise SecurityError(f"[security] {key}: unknown key; the keys are {', '.join(SECURITY_KEYS)}")
    paths = {key: _read_path(section, key, folder) for key in ("ca_file", "certificate_file", "key_file")}
    settings = SecuritySettings(
        folder=folder,
        tls=_read_switch(section, "tls", default=False),
        **paths,
        key_password=_read_source(section, "key_password", folder),
        server_name=_read_text(section, "server_name"),
        verify_hostname=_read_switch(section, "verify_hostname", default=True),
        verify_certificate=_read_switch(section, "verify_certificate", default=True),
        mechanism=_read_text(section, "mechanism"),
        user=_read_text(section, "user") or "",
        password=_read_source(section, "password", folder),
        token_command=_read_command(section),
    )
    _check_tls(settings)
    _check_sasl(settings, section)
    return settings


def _advice_for(key: str) -> str:
    if key == "token":
        return "name a command that prints it: token_command"
    return f"name an environment variable or a file that holds it: {key}_env or {key}_file"


def _check_tls(settings: SecuritySettings) -> None:
    if settings.key_file and not settings.certificate_file:
        raise SecurityError("[security] key_file: a key without a certificate; give certificate_file too")
    if settings.key_password and not settings.certificate_file:
        raise SecurityError(f"[security] {settings.key_password.key}: there is no key; give certificate_file too")


def _check_sasl(settings: SecuritySettings, section: Mapping[str, object]) -> None:
    mechanism = settings.mechanism
    if mechanism is None:
        surplus = next((key for key in SASL_KEYS if key in section), None)
        if surplus:
            raise SecurityError(f"[security] {surplus}: no mechanism; give one of {', '.join(MECHANISMS)}")
        return
    if mechanism not in MECHANISMS:
        raise SecurityError(f"[security] mechanism: {mechanism!r} is unknown; the choices are {', '.join(MECHANISMS)}")
    needed = ("token_command",) if mechanism == OAUTHBEARER else ("user", "password_env or password_file")
    given = (settings.token_command,) if mechanism == OAUTHBEARER else (settings.user, settings.password)
    missing = [name for name, value in zip(needed, given, strict=True) if not value]
    if missing:
        raise SecurityError(f"[security] mechanism: {mechanism} needs {' and '.join(missing)}")
    foreign = ("user", "password_env", "password_file") if mechanism == OAUTHBEARER else ("token_command",)
    surplus = next((key for key in foreign if key in section), None)
    if surplus:
        raise SecurityError(f"[security] {surplus}: not for {mechanism}; leave it out")


def _read_text(section: Mapping[str, object], key: str) -> str | None:
    """The text of a key, None without one. What is wrong is not repeated: it may be a secret."""
    value = section.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise SecurityError(f"[security] {key}: not a text; write it in quotes, not empty")
    return value


def _read_switch(section: Mapping[str, object], key: str, *, default: bool) -> bool:
    value = section.get(key, default)
    if not isinstance(value, bool):
        raise SecurityError(f"[security] {key}: neither true nor false")
    return value


def _read_path(section: Mapping[str, object], key: str, folder: Path) -> Path | None:
    text = _read_text(section, key)
    return None if text is None else folder / text


def _read_source(section: Mapping[str, object], name: str, folder: Path) -> SecretSource | None:
    variable, path = _read_text(section, f"{name}_env"), _read_path(section, f"{name}_file", folder)
    if variable is not None and path is not None:
        raise SecurityError(f"[security] {name}_env: there is {name}_file too; leave out one of them")
    if variable is not None:
        return SecretSource(f"{name}_env", variable)
    return None if path is None else SecretSource(f"{name}_file", path=path)


def _read_command(section: Mapping[str, object]) -> tuple[str, ...]:
    text = _read_text(section, "token_command")
    try:
        return tuple(shlex.split(text)) if text else ()
    except ValueError as error:
        raise SecurityError(f"[security] token_command: not a command: {error}") from None
