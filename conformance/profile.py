"""Target profiles: facts about a target that the kit cannot find out by requests.

A profile is a TOML file; every section and key is optional, and nothing else is allowed:

    [target]                      # with start, crashes are survived and restarts tested
    start = "kafka/start 4"       # prints the bootstrap address on a line of its own once the target serves
    kill = "kafka/kill 4"         # without warning; the next start has the same storage; not needed if start stays in
                                  # the foreground: then the kit kills its process group
    move = "kafka/cluster move {group}" # has another node coordinate the group; the old one is up when it ends
    topic = "orders"              # of protocols without a way to create one: it exists, with some partitions
    keeps_storage = true          # false if a start forgets everything: then crashes are survived, no restart tested

    [settings]                    # fields of `Settings`; what is not here is asked or measured
    initial_rebalance_delay = 600
    override = true               # these are right even where the broker says otherwise

    [capabilities]                # what can be tested here, beyond what follows from the rest
    offers = ["retention"]

    [security]                    # TLS and SASL: see `fencepost.adapters.security.settings`
    ca_file = "ca.pem"            # with kafka+ssl:// before the address
    mechanism = "SCRAM-SHA-512"
    user = "kit"
    password_env = "KIT_PASSWORD" # the environment variable that holds it; secrets are not written here

    [known]                       # declared deviations, by requirement id
    JOIN-29 = "fixed in the next release, issue 123"

    [about]                       # what the target is, for reports
    name = "acme-broker"          # and version, revision, language, license, url, contact

    [limits]                      # of a push coordinator, which tells no settings
    response_timeout_ms = 1000

    [timing]
    grace_ms = 2000               # how late a timer may fire

A command is split into words as a shell does and run without one, in the profile's folder.

With start, the kit looks at the target's CPU time and output whenever it has nothing in flight: of the session of start
if that stays in the foreground, otherwise of the processes that listen at the target's addresses on this machine, and
of what they started (on Linux; output if it goes to a file). The report says if a target could not be watched.
"""

import shlex
import tomllib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fencepost.adapters.security.settings import SECURITY_KEYS, SecurityError, SecuritySettings, read_security
from fencepost.adapters.wire.process_control import GROUP_PLACE
from fencepost.conformance.specification import CLIENT_SPECIFICATION, all_specifications
from fencepost.model.catalogue.requirement import CAPABILITIES
from fencepost.model.errors import FencepostError
from fencepost.model.settings import SETTING_OF_CONFIG, Settings

ABOUT_KEYS = ("name", "version", "revision", "language", "license", "url", "contact")
LIMIT_KEYS = (
    "session_timeout_ms",
    "min_session_timeout",
    "max_session_timeout",
    "response_timeout_ms",
    "maximum_retries",
    "backoff_ms",
    "tick_ms",
)
SECTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "target": ("start", "kill", "move", "keeps_storage", "topic"),
        "settings": (*(setting.name for setting in fields(Settings)), "override"),
        "capabilities": ("offers",),
        "known": (),
        "about": ABOUT_KEYS,
        "timing": ("grace_ms",),
        "security": SECURITY_KEYS,
        "limits": LIMIT_KEYS,
    }
)
"""The keys that each section may have; those of `known` are the ids of requirements, of whatever protocol."""
CLIENT_SECTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"known": (), "about": SECTIONS["about"], "security": SECTIONS["security"]}
)
"""The keys that each section of a profile of a client may have."""

LONG_SETTINGS = ("offsets_retention", "retention_check_interval")
"""The settings that may be above `MAX_INT`: Kafka has minutes for one, and 64 bits for the other."""
MAX_INT, MAX_LONG = 2**31 - 1, 2**53
POSITIVE_SETTINGS = ("max_group_size", "offsets_partitions")
"""The settings that Kafka does not let be 0."""

DERIVED_CAPABILITIES: Mapping[str, str] = MappingProxyType(
    {
        "restart": "from [target] start",
        "second-node": "from the nodes that Metadata names",
        "graceful-move": "from [target] move",
        "size-limit": "from the setting max_group_size",
        "initial-delay": "from the setting initial_rebalance_delay",
        "no-initial-delay": "from the setting initial_rebalance_delay",
        "session-bounds": "from the settings min_session_timeout and max_session_timeout",
        "metadata-limit": "from the setting max_offset_metadata",
        "intrusive": "from the flag --intrusive, or from [target] start",
        "slow": "from the flag --slow",
    }
)
"""Capabilities that a profile cannot offer, because they follow from other facts."""


class ProfileError(FencepostError):
    """The profile cannot be used; the message is one line: place, problem, remedy."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The contents of a profile. `folder` is where the commands are run; `settings` hold only what the profile names,
    by field of `Settings`, and with `overrides_broker` the broker may say otherwise; `deviations` maps requirement ids
    to reasons; `about` says what the target is, by `ABOUT_KEYS`; times are in milliseconds. `topic` and `limits` are
    for protocols that have no way to ask for them."""

    folder: Path = Path()
    start: tuple[str, ...] = ()
    kill: tuple[str, ...] = ()
    move: tuple[str, ...] = ()
    keeps_storage: bool = True
    settings: Mapping[str, int] = field(default_factory=dict)
    overrides_broker: bool = False
    security: SecuritySettings = field(default_factory=SecuritySettings)
    capabilities: frozenset[str] = frozenset()
    deviations: Mapping[str, str] = field(default_factory=dict)
    grace: int | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    topic: str = ""
    limits: Mapping[str, int] = field(default_factory=dict)

    @property
    def can_restart(self) -> bool:
        """Whether the target can be killed and started again."""
        return bool(self.start)

    @property
    def survives_restarts(self) -> bool:
        """Whether the target keeps its storage across a restart, so that recovery can be tested."""
        return self.can_restart and self.keeps_storage


def load_profile(path: Path | None, sections: Mapping[str, tuple[str, ...]] = SECTIONS) -> Profile:
    """The profile in a file, which may have these sections; an empty one without a file. Raises `ProfileError` for the
    first mistake in it."""
    if path is None:
        return Profile()
    document = _read_document(path)
    try:
        return _parse_profile(path.parent.absolute(), document, sections)
    except ProfileError as error:
        raise ProfileError(f"{path}: {error}") from error


def _read_document(path: Path) -> dict[str, Any]:
    """The TOML in a file. Raises `ProfileError`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileError(f"{path}: {error.strerror}; name a readable TOML file") from error
    except (ValueError, RecursionError) as error:  # also of numbers and nesting beyond all measure
        mark = path.read_bytes()[:3]
        if mark == BOM_UTF8:
            raise ProfileError(f"{path}: begins with a byte order mark; save it as UTF-8 without one") from error
        if mark.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise ProfileError(f"{path}: is UTF-16; save it as UTF-8") from error
        raise ProfileError(f"{path}: not TOML: {error}") from error


def _parse_profile(folder: Path, document: Mapping[str, Any], sections: Mapping[str, tuple[str, ...]]) -> Profile:
    for name, section in document.items():
        if name == "options":  # those of commands, which the command line reads
            continue
        if name not in sections:
            raise ProfileError(f"{name}: unknown section; the sections are {', '.join(sections)}")
        if not isinstance(section, dict):
            raise ProfileError(f"{name}: not a section; write [{name}] on a line of its own")
        keys = sections[name] if name != "known" else _ids_of_requirements(sections is CLIENT_SECTIONS)
        for key in section:
            if key not in keys and name != "security":
                written = _dotted_name(key, section[key])
                raise ProfileError(f"[{name}] {written}: {_unknown_key(name, written, keys)}")
    target, timing = document.get("target", {}), document.get("timing", {})
    if "kill" in target and "start" not in target:
        raise ProfileError("[target]: kill is of no use without start; give that too")
    return Profile(
        folder=folder,
        start=_read_command(target, "start"),
        kill=_read_command(target, "kill"),
        move=_read_move(target),
        keeps_storage=_read_bool("[target] keeps_storage", target.get("keeps_storage", True)),
        settings=_read_settings(document.get("settings", {})),
        overrides_broker=_read_bool("[settings] override", document.get("settings", {}).get("override", False)),
        security=_read_security(document.get("security", {}), folder),
        capabilities=_read_capabilities(document.get("capabilities", {}).get("offers", [])),
        deviations={key: _read_text(f"[known] {key}", value) for key, value in document.get("known", {}).items()},
        grace=_read_number("[timing] grace_ms", timing["grace_ms"]) if timing else None,
        about={key: _read_text(f"[about] {key}", value) for key, value in document.get("about", {}).items()},
        topic=_read_text("[target] topic", target["topic"]) if "topic" in target else "",
        limits={key: _read_number(f"[limits] {key}", value) for key, value in document.get("limits", {}).items()},
    )


def _ids_of_requirements(is_of_client: bool) -> Sequence[str]:
    of_clients = CLIENT_SPECIFICATION.requirements
    return [id for each in all_specifications() for id in each.requirements if (id in of_clients) is is_of_client]


def _read_security(section: Mapping[str, object], folder: Path) -> SecuritySettings:
    try:
        return read_security(section, folder) if section else SecuritySettings()
    except SecurityError as error:
        raise ProfileError(str(error)) from None


def _unknown_key(section: str, key: str, keys: Sequence[str]) -> str:
    if section == "known":
        return f"no such requirement; write an id like {'JOIN-29' if 'JOIN-29' in keys else 'MEMBER-12'}"
    if section == "settings" and (meant := setting_of(key)) is not None:
        return f"this is Kafka's name; write {meant}"
    return f"unknown key; the keys are {', '.join(keys)}"


def _read_settings(section: Mapping[str, object]) -> dict[str, int]:
    found = {name: _read_setting(name, value) for name, value in section.items() if name != "override"}
    low, high = found.get("min_session_timeout", 0), found.get("max_session_timeout")
    if high is not None and low > high:
        raise ProfileError(f"[settings] min_session_timeout: {low} is above max_session_timeout, {high}")
    return found


def _read_setting(name: str, value: object) -> int:
    where = f"[settings] {name}"
    number, least = _read_number(where, value), int(name in POSITIVE_SETTINGS)
    most = MAX_LONG if name in LONG_SETTINGS else MAX_INT
    if not least <= number <= most:
        raise ProfileError(f"{where}: {number} is not from {least} to {most}")
    return number


def _dotted_name(key: str, value: object) -> str:
    """The name that was written: TOML reads `group.max.size` as tables within tables."""
    while isinstance(value, dict) and len(value) == 1:
        ((word, value),) = value.items()
        key = f"{key}.{word}"
    return key


def setting_of(kafka_name: str) -> str | None:
    """The setting that Kafka calls so, with dots or underscores, with or without its unit; None if there is none."""
    plain = kafka_name.replace(".", "_")
    for config, name in SETTING_OF_CONFIG.items():
        full = config.replace(".", "_")
        if plain in (full, full.removesuffix("_ms")):
            return name
    return None


def _read_text(where: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ProfileError(f"{where}: {value!r} is not a text; write it in quotes, not empty")
    return value


def _read_bool(where: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ProfileError(f"{where}: {value!r} is neither true nor false")
    return value


def _read_number(where: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        shown = str(value).lower() if isinstance(value, bool) else repr(value)  # as TOML writes it
        raise ProfileError(f"{where}: {shown} is not a whole number from 0 up")
    return value


def _read_command(target: Mapping[str, object], key: str) -> tuple[str, ...]:
    if key not in target:
        return ()
    text = _read_text(f"[target] {key}", target[key])
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ProfileError(f"[target] {key}: {text!r} is not a command: {error}") from error


def _read_move(target: Mapping[str, object]) -> tuple[str, ...]:
    words = _read_command(target, "move")
    if words and not any(GROUP_PLACE in word for word in words):
        raise ProfileError(f"[target] move: {target['move']!r} names no group; write {GROUP_PLACE} where its id goes")
    return words


def _read_capabilities(value: object) -> frozenset[str]:
    if not isinstance(value, list):
        raise ProfileError(f"[capabilities] offers: {value!r} is not a list; write it in brackets")
    offered = [_read_text("[capabilities] offers", name) for name in value]
    for name in offered:
        if name in DERIVED_CAPABILITIES:
            raise ProfileError(
                f"[capabilities] offers: {name!r} follows {DERIVED_CAPABILITIES[name]}; leave it out here"
            )
        if name not in CAPABILITIES:
            choices = ", ".join(choice for choice in CAPABILITIES if choice not in DERIVED_CAPABILITIES)
            raise ProfileError(f"[capabilities] offers: {name!r} is unknown; the choices are {choices}")
    return frozenset(offered)
