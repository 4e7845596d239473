"""The reference of formats: the profile, and the JSON report with its schema."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from fencepost.conformance.capabilities import REMEDIES
from fencepost.conformance.profile import DERIVED_CAPABILITIES, SECTIONS
from fencepost.conformance.reports.json_report import report_schema
from fencepost.model.catalogue.requirement import CAPABILITIES
from fencepost.model.settings import SETTING_OF_CONFIG, Settings

MEANINGS: Mapping[str, Mapping[str, str]] = {
    "target": {
        "start": "starts the target, and prints host:port on a line of its own once it serves; it may stay in the "
        "foreground. With it, crashes are survived and restarts tested",
        "kill": "ends a target without warning whose start command has ended; the next start has the same storage",
        "move": "has another node coordinate the group `{group}`; the old node is up when it ends",
        "keeps_storage": "`false` if a start forgets everything: crashes are then survived, and restarts not tested",
        "topic": "a topic with some partitions, where the kit creates none (push); `fencepost` if absent",
    },
    "limits": {
        "session_timeout_ms": "a session timeout for the consumers of the kit, in milliseconds; 3000 if absent",
        "min_session_timeout": "a push coordinator refuses session timeouts up to this one",
        "max_session_timeout": "and above this one; after an election it waits so long",
        "response_timeout_ms": "how long it waits for responses to Stop and Start",
        "maximum_retries": "how often it retries a failed rebalance",
        "backoff_ms": "how long it waits before a retry",
        "tick_ms": "how late it may look at its schedule; 20 if absent",
    },
    "capabilities": {"offers": "a list of what can be tested here, beyond what follows from the rest; see below"},
    "known": {"ID": "a declared deviation by the id of its requirement, with the reason"},
    "about": {
        "name": "what the target is called in reports",
        "version": "its version",
        "revision": "its commit or build",
        "language": "the language that it is written in",
        "license": "its license",
        "url": "its site",
        "contact": "whom to ask about it",
    },
    "timing": {"grace_ms": "how late a timer may fire on this machine, in milliseconds"},
    "security": {
        "tls": "`true`: TLS, as kafka+ssl:// before the address says it",
        "ca_file": "the certificates of the authorities that are trusted, as PEM",
        "certificate_file": "the certificate of the kit, as PEM",
        "key_file": "its key, as PEM",
        "key_password_env": "the environment variable with the password of the key",
        "key_password_file": "the file with the password of the key",
        "server_name": "the name in the broker's certificate, if it is not that of the address",
        "verify_hostname": "`false`: any name in the certificate will do",
        "verify_certificate": "`false`: any certificate will do",
        "mechanism": "SCRAM-SHA-512, SCRAM-SHA-256, PLAIN or OAUTHBEARER",
        "user": "the user",
        "password_env": "the environment variable with the password",
        "password_file": "the file with the password",
        "token_command": "the command that prints a token, for OAUTHBEARER",
    },
}
"""The meanings of the keys of each section but `[settings]`."""


def format_pages() -> dict[str, str]:
    """The pages on formats, and the schema itself."""
    return {
        "reference/profile.md": profile_page(),
        "reference/report.md": report_page(),
        "reference/report-2.schema.json": report_schema(),
    }


def profile_page() -> str:
    """All sections and keys of a profile."""
    text = "# Profile\n\nA TOML file that tells what cannot be asked of a target, for `fencepost test --profile F`. "
    text += "Every section and key is optional, and nothing else is allowed. Commands are split into words as a shell "
    text += "does, and run without one in the folder of the profile.\n"
    for section in SECTIONS:
        text += f"\n## `[{section}]`\n\n"
        text += settings_table() if section == "settings" else table(("key", "meaning"), MEANINGS[section].items())
    rows = (
        (name, f"{meaning}; {offered_by(name)}; else switched on by {REMEDIES.get(name, 'nothing')}")
        for name, meaning in CAPABILITIES.items()
    )
    return text + f"\n## Capabilities\n\n{table(('capability', 'meaning'), rows)}"


def settings_table() -> str:
    """The settings with Kafka's names and defaults."""
    kafka = {name: config for config, name in SETTING_OF_CONFIG.items()}
    rows = ((each.name, f"`{kafka.get(each.name, '-')}`", str(each.default)) for each in fields(Settings))
    told = "What the broker does not tell and the kit cannot measure; times are in milliseconds.\n\n"
    override = "\nWith `override = true` these count even where the broker says otherwise.\n"
    return told + table(("key", "Kafka's name", "Kafka's default"), rows) + override


def offered_by(capability: str) -> str:
    """Where a capability comes from."""
    derived = DERIVED_CAPABILITIES.get(capability)
    return f"follows {derived}" if derived is not None else "may be in `offers`"


def report_page() -> str:
    """The classes of the JSON report."""
    schema = json.loads(report_schema())
    text = (
        "# JSON report\n\n`--json F` writes it, `fencepost report F` reads it, `fencepost report --schema` prints its "
    )
    text += "JSON Schema ([report-2.schema.json](report-2.schema.json)). Equal reports give equal bytes. A field whose "
    text += "value would be null is left out.\n"
    first = schema["$ref"].rpartition("/")[2]
    for name in (first, *(each for each in schema["$defs"] if each != first)):
        entry = schema["$defs"][name]
        text += f"\n## {name}\n\n{entry['description'].replace('|', chr(92) + '|')}\n\n"
        text += table(("field", "type", ""), field_rows(entry))
    return text


def field_rows(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The fields of a class."""
    for name, kind in entry["properties"].items():
        yield name, describe_type(kind), "" if name in entry["required"] else "may be left out"


def describe_type(kind: Mapping[str, Any]) -> str:
    """A type of the schema in words."""
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in kind:
        return " or ".join(f"`{each}`" for each in kind["enum"])
    if "prefixItems" in kind:
        return "list of " + ", ".join(map(describe_type, kind["prefixItems"]))
    if "items" in kind:
        return f"list of {describe_type(kind['items'])}"
    if "additionalProperties" in kind:
        return f"object of {describe_type(kind['additionalProperties'])}"
    least = f" from {kind['minimum']}" if "minimum" in kind else ""
    return f"{kind['type']}{least}"


def table(head: tuple[str, ...], rows: Any) -> str:
    """A table of Markdown; the first column is code."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += (
        f"| `{first}` | {' | '.join(each.replace('|', chr(92) + '|') for each in rest)} |" for first, *rest in rows
    )
    return "\n".join(lines) + "\n"
