"""The log lines of the two group coordinators of Apache Kafka, as a table for each.

A line is a step of the coordinator; its placeholders are the fields of the step. Both coordinators log at level INFO,
in classes below `kafka.coordinator.group` and `org.apache.kafka.coordinator.group`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KAFKA_3_LINES = """
prepare     Preparing to rebalance group <group> in state... with old generation <generation> (...) (reason: <reason>)
complete    Stabilized group <group> generation <generation> (...) with <count> members
empty       Group <group> with generation <generation> is now empty (...)
publish     Assignment received from leader <member> for group <group> for generation <generation>... has <count>...
issue       Dynamic... unknown member id joins group <group> in <word> state. Created... id <id> and request...
register    Dynamic... unknown member id joins group <group> in <word> state. Created... id <id> for this...
register    Static member... unknown member id joins group <group> in <word> state. Created... id <id> for this...
replace     Static member... unknown member id joins group <group> in <word> state. Replacing... member <id> with...
unregister  Member MemberMetadata(memberId=<member>, groupInstanceId=...) has left group <group> through <reason>
unregister  Member <member> in group <group> has <reason>, removing it from the group
expel       Group <group> removed dynamic members who haven't joined: <members>
expel-unsynced Group <group> removed members who haven't sent their sync request...: <members>
withdraw    Pending member with memberId=<member> has left group <group> through explicit...
withdraw    Pending member <member> in group <group> has been removed after session timeout expiration.
forget      Group <group> transitioned to Dead in generation <generation>
load        Elected as the group coordinator...
load        Resigned as the group coordinator...
load        Scheduling loading...
load        Scheduling unloading...
load        Starting up...
"""
KAFKA_4_LINES = """
prepare     Preparing to rebalance group <group> in state... with old generation <generation> (reason: <reason>).
complete    Stabilized group <group> generation <generation> with <count> members.
empty       Group <group> with generation <generation> is now empty.
publish     Assignment received from leader <member> for group <group> for generation <generation>... has <count>...
issue       Dynamic... unknown member id joins group <group> in <word> state. Created... id <id> and request...
register    Dynamic... unknown member id joins group <group> in <word> state. Created... id <id> and added...
register    Dynamic... unknown member id joins group <group> in <word> state. Created... id <id> for this...
register    Pending dynamic member with id <member> joins group <group> in <word> state. Adding to the group now.
register    Static member... unknown member id joins group <group> in <word> state. Created... id <id> for this...
replace     Static member... unknown member id joins group <group> in <word> state. Replacing... member <id> with...
withdraw    [Group <group>] Pending member <member> has left group through explicit...
unregister  [Group <group>] Member <member> has left group through <reason>
unregister  [Group <group>] Static member <member> with instance id... has left group through <reason>
unregister  Member <member> in group <group> has <reason>, removing it from the group.
expel       Group <group> removed dynamic members who haven't joined: <members>
expel-unsynced Group <group> removed members who haven't sent their sync request...: <members>
withdraw    Pending member <member> in group <group> has been removed after session timeout expiration.
sweep       Generated... tombstone records while cleaning up group metadata in...
delete      The following groups were deleted: <groups>. A total of...
load        Scheduling loading...
load        Scheduling unloading...
load        Failed to load...
load        Starting up...
"""
SILENT_LINES = """
-           Static member which joins during Stable...
-           Startup complete...
-           Finished loading...
-           Finished unloading...
-           Removed <count> expired offsets...
-           Received notification of heartbeat expiration...
-           Shutting down...
-           Shutdown complete...
"""
"""Lines of coordinators that are no steps."""

PLACEHOLDERS: Mapping[str, str] = {
    "group": r"(?P<group>.*)",
    "member": r"(?P<member>.+?)",
    "id": r"(?P<member>\S+)",
    "generation": r"(?P<generation>\d+)",
    "groups": r"(?P<groups>.*)",
    "members": r"(?P<members>.*)",
    "count": r"(?P<count>\d+)",
    "reason": r"(?P<reason>.*)",
    "word": r"\w+",
}
"""Regular expressions of the placeholders. Three dots are any text; in brackets they are optional."""


@dataclass(frozen=True, slots=True)
class LinePattern:
    """One kind of line: the step and the regular expression."""

    step: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class CoordinatorFormat:
    """One of the two coordinators: the prefix of its lines, and the kinds of lines."""

    name: str
    prefix: re.Pattern[str]
    lines: tuple[LinePattern, ...]


def parse_table(table: str) -> tuple[LinePattern, ...]:
    """The patterns in the rows of a table."""
    rows = (row.split(maxsplit=1) for row in table.splitlines() if row)
    return tuple(LinePattern(step, re.compile(to_regex(text))) for step, text in rows)


def to_regex(text: str) -> str:
    """The regular expression for the text of a line with placeholders."""
    found = re.escape(text).replace(r"\ \(\.\.\.\)", r"(?: \([^)]*\))?").replace(r"\.\.\.", ".*?")
    return re.sub("<([a-z]+)>", lambda hole: PLACEHOLDERS[hole[1]], found)


KAFKA_3 = CoordinatorFormat(
    "Apache Kafka 3",
    re.compile(r"\[(?:GroupCoordinator|GroupMetadataManager brokerId=) ?\d+\]:? "),
    parse_table(KAFKA_3_LINES),
)
KAFKA_4 = CoordinatorFormat(
    "Apache Kafka 4",
    re.compile(r"\[GroupCoordinator id=\d+(?: topic=\S+ partition=\d+)?\] "),
    parse_table(KAFKA_4_LINES),
)
COORDINATOR_FORMATS = (KAFKA_4, KAFKA_3)
NUMERIC_FIELDS = frozenset({"generation", "count"})
SILENT_PATTERNS = parse_table(SILENT_LINES)


@dataclass(frozen=True, slots=True)
class LogStep:
    """A step in a log: the coordinator, the name of the step, and its fields. The name is empty if the line is not in
    the tables."""

    coordinator: str
    name: str
    fields: Mapping[str, Any]


def parse_message(text: str) -> LogStep | None:
    """The step in a message; None if the message is not a coordinator's, or not a step."""
    for writer in COORDINATOR_FORMATS:
        prefix = writer.prefix.match(text)
        if prefix is None:
            continue
        message = text[prefix.end() :]
        for kind in writer.lines:
            found = kind.pattern.fullmatch(message)
            if found is not None:
                return LogStep(writer.name, kind.step, parse_fields(found))
        is_silent = any(kind.pattern.fullmatch(message) for kind in SILENT_PATTERNS)
        return None if is_silent else LogStep(writer.name, "", {})
    return None


def parse_fields(found: re.Match[str]) -> dict[str, Any]:
    """The fields of a matched line, with numbers as integers."""
    return {name: int(value) if name in NUMERIC_FIELDS else value for name, value in found.groupdict().items()}
