"""What group coordinators write into their logs, release by release: a table of messages, and the step that each tells.

A row has the step, the releases that write the message so, and the message with its placeholders, which are the fields
of the step. `...` is any text; a row that ends in it has the beginning of a message.
After a whole message a line may go on with what
its layout adds (logger, thread); one that ends in a placeholder has to be cut there first. Newer messages come first.

The words are those of Apache Kafka's sources at each release: `GroupCoordinator`, `GroupMetadataManager` (Scala, up to
3.9) and `GroupMetadataManager`, `CoordinatorRuntime`, `GroupCoordinatorShard` (Java, from 3.7).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

Release = tuple[int, int]
"""Major and minor version."""
NEWEST: Release = (99, 0)

SCALA_LINES = """
load       0.10-3.9  Starting up ...
load       0.11-3.9  Scheduling unloading ...
load       0.11-3.9  Scheduling loading ...
load       0.10-0.10 Loading offsets and group metadata from ...
load       2.8-3.9   Resigned as the group coordinator ...
load       2.8-3.9   Elected as the group coordinator ...
lose       0.10-3.9  Unloading group metadata for <group> with generation <gen>
lose       0.10-3.9  Loading group metadata for <group> with generation <gen>
delete     2.0-3.9   The following groups were deleted: <groups>. A total of ...
delete     1.1-1.1   The following groups were deleted: <groups>
forget     0.10-3.9  Group <group> transitioned to Dead in generation <gen>
withdraw   2.2-2.8   Pending member <member> is leaving group <group>.
withdraw   2.2-3.9   Pending member <member> in group <group> has been removed after session timeout expiration.
withdraw   3.0-3.9   Pending member with memberId=<member> has left group <group> through explicit ...
expel-unsynced 3.0-3.9 Group <group> removed members who haven't sent their sync request<any>: <members>
expel      2.8-3.9   Group <group> removed dynamic members who haven't joined: <members>
expel      2.7-2.7   Group <group> remove dynamic members who haven't joined: <members>
unregister 3.0-3.9 Member MemberMetadata(memberId=<member>, ...) has left group <group> through <reason>
unregister 0.11-3.9 Member <member> in group <group> has <reason>, removing it from the group
unregister 2.4-2.8 Member[..., member.id <member>] in group <group> has <reason>, removing ...
replace 3.0-3.9 Static member ... joins group <group> in <word> state. Replacing ... member <id> with ...
replace 2.5-2.8 Static member <any> of group <group> with ... rejoins, ..., while old member id <id> will ...
replace 2.3-2.4 Static member <any> with ... rejoins, ..., while old member <id> will ...
register 3.0-3.9 Static member ... joins group <group> in <word> state. Created ... id <id> for this ...
register 2.5-2.8 Adding new static member <any> to group <group> with member id <id>.
register 2.5-2.8 Static Member ... joins group <group> in <word> state. Created ... id <id> for this ...
register 2.5-3.9 <kind> Member ... joins group <group> in <word> state. Created ... id <id> for this ...
issue 3.0-3.9 Dynamic member ... joins group <group> in <word> state. Created ... id <id> and request ...
publish 3.0-3.9 Assignment ... leader <member> for group <group> for generation <gen>. ... <count> members, ...
publish 2.8-2.8 Assignment ... leader for group <group> for generation <gen>. ... has <count> members, ...
publish 0.10-2.7 Assignment ... leader for group <group> for generation <gen>
forget     0.10-0.10 Group <group> generation <gen> is dead and removed
empty      0.11-3.9  Group <group> with generation <gen> is now empty <partition>
empty      0.10-0.10 Group <group> with generation <gen> is now empty
complete 2.8-3.9 Stabilized group <group> generation <gen> <partition> with <count> members
complete 0.11-2.7 Stabilized group <group> generation <gen> <partition>
complete 0.10-0.10 Stabilized group <group> generation <gen>
prepare 2.1-3.9 Preparing to rebalance group <group> in ... with old generation <gen> <partition> (reason: <reason>)
prepare 0.11-2.0 Preparing to rebalance group <group> with old generation <gen> <partition>
prepare 0.10-0.10 Preparing to restabilize group <group> with old generation <gen>
"""
JAVA_LINES = """
prepare 3.7- Preparing to rebalance group <group> in ... with old generation <gen> (reason: <reason>).
complete 3.7- Stabilized group <group> generation <gen> with <count> members.
empty      3.7-  Group <group> with generation <gen> is now empty.
publish 3.7- Assignment ... leader <member> for group <group> for generation <gen>. ... <count> members, ...
issue 3.7- Dynamic member ... joins group <group> in <word> state. Created ... id <id> and requesting ...
register 3.7- Dynamic member ... joins group <group> in state <word>. Created ... id <id> and added ...
register 3.7- Dynamic ... with unknown member id joins group <group> in <word> state. Created ... id <id> and added ...
register 3.7- Dynamic ... with unknown member id joins group <group> in <word> state. Created ... id <id> for this ...
register 3.7- Pending dynamic member with id <member> joins group <group> in <word> state. Adding to the group now.
register 3.7- Static member ... joins group <group> in <word> state. Created ... id <id> for this ...
replace 3.7- Static member ... joins group <group> in <word> state. Replacing ... member <id> with ...
withdraw   3.7-  [Group <group>] Pending member <member> has left group through explicit ...
unregister 3.7- [Group<any> <group>] Dynamic <word> <member> has left group through <reason>
unregister 3.7- [Group<any> <group>] Static <word> <member> with instance id <any> has left group through <reason>
unregister 3.7- [Group <group>] Member <member> has left group through <reason>
unregister 3.7- Member <member> in group <group> has <reason>, removing it from the group.
expel      3.7-  Group <group> removed dynamic members who haven't joined: <members>
expel-unsynced 3.7- Group <group> removed members who haven't sent their sync request<any>: <members>
withdraw   3.7-  Pending member <member> in group <group> has been removed after session timeout expiration.
sweep      3.7-  Generated <n> tombstone records while cleaning up group metadata in ...
delete     3.7-  The following groups were deleted: <groups>. A total of ...
lose       4.0-  Loaded classic group <group> with <n> members ...
lose       3.7-  [GroupId=<group>] Unloading group metadata for generation <n>
lose       3.7-  [GroupId <group>] Converted the ...
lose       4.0-  Failed to persist metadata for group <group> static member ...
load       3.7-  Scheduling loading ...
load       3.7-  Scheduling unloading ...
load       3.7-  Failed to load ...
load       4.0-  Failed to write records to ...
load       4.0-  Failed to flush the pending records ...
load       3.7-  The state machine of the coordinator ...
load       3.7-  Starting up ...
"""
SILENT_LINES = """
- 0.10- Static member which joins during Stable ...
- 0.10- Static member joins during ...
- 0.10- Startup complete ...
- 0.10- Finished loading ...
- 0.10- Finished unloading ...
- 0.10- Removed <n> ...
- 0.10- Received notification of ...
- 0.10- Received unexpected notification of ...
- 0.10- Shutting down ...
- 0.10- Shutdown complete ...
- 0.10- Already loading ...
- 0.10- Not loading ...
- 0.10- Not removing ...
- 0.10- Offset load from ...
- 0.10- Attempted to load offsets ...
- 0.10- Loaded offsets and group metadata ...
- 0.10- Loaded <word> group ...
- 0.10- The following offsets of the group ...
- 0.10- Member id <any> was not found in ...
- 0.10- Member <any> has already been removed from the group. ...
- 0.10- Setting empty assignments ...
- 0.10- Sending empty assignment ...
- 0.10- Request memberId= ...
- 0.10- Group <any> is dead, skipping ...
- 0.10- Group <any> could not complete rebalance because no members rejoined ...
- 0.10- Group leader [ ...
- 0.10- group: <any> has received offset commits ...
- 0.10- Failed to write empty metadata ...
- 0.10- BrokerId <n> is no longer a coordinator ...
- 0.10- Group <any> has moved away ...
- 0.10- Attempt to add rejoining member ...
- 3.7- Started unloading ...
- 3.7- Ignored ...
- 3.7- The coordinator <any> is already ...
- 3.7- Cannot ...
- 3.7- Skip downgrading ...
- 3.7- Generated <n> ...
- 3.7- Execution of ...
- 3.7- Transition from ...
- 3.7- Failed to parse Consumer Protocol ...
- 3.7- [GroupId <any>] ...
- 3.7- [GroupId=<any>] Unloaded group metadata for group epoch ...
"""
"""Lines of coordinators that are no steps of a classic group, those about consumer, share and streams groups too."""

PLACEHOLDERS: Mapping[str, str] = {
    "group": r"(?P<group>(?:(?! in state ).)+)",
    "member": r"(?P<member>\S.*?)",
    "id": r"(?P<member>\S+)",
    "gen": r"(?P<generation>-?\d+)",
    "groups": r"(?P<groups>.*)",
    "members": r"(?P<members>(?:\w*\(|\[).*[\])])",
    "count": r"(?P<count>\d+)",
    "reason": r"(?P<reason>.*)",
    "partition": r"\(\S+-\d+\)",
    "kind": r"(?:Dynamic|Static)",
    "any": r".*?",
    "word": r"\w+",
    "n": r"\d+",
}
"""Regular expressions of the placeholders."""
OPEN_END = re.compile(r"<(?:reason|members|groups|group)>[).]*$")
"""The end of a message that nothing but the end of the line closes."""
NUMERIC_FIELDS = frozenset({"generation", "count"})


class End(Enum):
    """What ends a message: its own last words, or the end of its line; or the table has only its beginning."""

    MESSAGE = auto()
    LINE = auto()
    OPEN = auto()


@dataclass(frozen=True, slots=True)
class MessageForm:
    """A row of the table: the step, the releases that write it, and the regular expression of the message.

    `start` is the text before the first placeholder, which sorts most rows out quickly.
    """

    step: str
    since: Release
    until: Release
    start: str
    pattern: re.Pattern[str]
    end: End


@dataclass(frozen=True, slots=True)
class Coordinator:
    """One implementation of a coordinator: what its lines begin with, and its messages."""

    anchor: re.Pattern[str]
    forms: tuple[MessageForm, ...]


@dataclass(frozen=True, slots=True)
class LogStep:
    """What a message says: the step with its fields; "" if the message is in no table, "-" if it is no step.

    `node` names the broker. `form` is the row of the table. `tail` is what follows the message in its line, None if
    that cannot be told from it.
    """

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    node: str = ""
    form: MessageForm | None = None
    tail: str | None = None


def parse_table(table: str) -> tuple[MessageForm, ...]:
    """The messages in the rows of a table."""
    return tuple(parse_row(*row.split(maxsplit=2)) for row in table.splitlines() if row)


def parse_row(step: str, releases: str, text: str) -> MessageForm:
    """The message in one row."""
    since, _, until = releases.partition("-")
    whole, is_whole = text.removesuffix(" ..."), not text.endswith(" ...")
    end = End.LINE if OPEN_END.search(text) else End.MESSAGE if is_whole else End.OPEN
    regex = re.sub(r"<([a-z]+)>", lambda hole: PLACEHOLDERS[hole[1]], re.escape(whole).replace(r"\.\.\.", ".*?"))
    pattern = re.compile(regex + (r"(?![\w-])" if end is End.MESSAGE else ""), re.DOTALL)
    last = parse_release(until) if until else NEWEST
    return MessageForm(step, parse_release(since), last, re.split(r"<|\.\.\.", whole)[0], pattern, end)


def parse_release(text: str) -> Release:
    """A release by its number: `2.8`."""
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


SILENT_FORMS = parse_table(SILENT_LINES)
COORDINATORS = (
    Coordinator(
        re.compile(r"\[GroupCoordinator id=(?P<node>\d+)(?: topic=\S+ partition=\d+)?\] "), parse_table(JAVA_LINES)
    ),
    Coordinator(
        re.compile(r"\[Group(?:Coordinator|MetadataManager brokerId=| Metadata Manager on Broker) ?(?P<node>\d+)\]:? "),
        parse_table(SCALA_LINES),
    ),
)
ANCHOR = re.compile("|".join(re.sub(r"\(\?P<node>", "(?:", each.anchor.pattern) for each in COORDINATORS))
"""Where the message of a coordinator begins in a line."""
NAMED_GROUP = re.compile(
    r"\[Group(?:Id)?[ =](?P<id>[^\]]+)\]|\b[Gg]roup:? (?P<name>(?!metadata|coordinator|id\b)\S+)[ .,]"
)
"""The group that a message names which is in no table."""


def parse_message(text: str, cut_tail: "re.Pattern[str] | None" = None) -> LogStep:
    """What the message says with which `text` begins; `cut_tail` finds what the layout adds to every line."""
    for coordinator in COORDINATORS:
        anchor = coordinator.anchor.match(text)
        if anchor is not None:
            return parse_coordinator_message(coordinator, text[anchor.end() :], anchor["node"], cut_tail)
    return LogStep("")


def parse_coordinator_message(
    coordinator: Coordinator, text: str, node: str, cut_tail: "re.Pattern[str] | None"
) -> LogStep:
    """What a message of this coordinator says."""
    inner = text if cut_tail is None else cut_tail.sub("", text, count=1)
    for form in coordinator.forms:
        if not text.startswith(form.start):
            continue
        by_line = form.end is End.LINE and cut_tail is not None
        found = form.pattern.fullmatch(inner) if by_line else form.pattern.match(text)
        if found is not None:
            tail = text[found.end() :] if form.end is End.MESSAGE else None
            return LogStep(form.step, parse_fields(found), node, form, tail)
    for form in SILENT_FORMS:
        if text.startswith(form.start) and form.pattern.match(text):
            return LogStep("-", {}, node)
    named = NAMED_GROUP.search(inner)
    group = named and (named["id"] or named["name"])
    return LogStep("", {"group": group.rstrip(".")} if group else {}, node)


def parse_fields(found: re.Match[str]) -> dict[str, Any]:
    """The fields of a matched line, with numbers as integers."""
    return {name: int(value) if name in NUMERIC_FIELDS else value for name, value in found.groupdict().items()}


def name_releases(forms: "set[MessageForm]") -> str:
    """The releases of Apache Kafka that write all these messages."""
    since, until = max(each.since for each in forms), min(each.until for each in forms)
    if since > until:
        return "several releases of Kafka"
    first, last = (".".join(map(str, each)) for each in (since, until))
    if until == NEWEST:
        return f"Kafka {first} or newer"
    return f"Kafka {first}" if since == until else f"Kafka {first} to {last}"
