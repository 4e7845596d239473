"""Reads the messages of programs in their logs by a table for each program.

A row of a table has the step that a message tells, the releases that write it so, and the message with its
placeholders, which are the fields of the step; `-` is no step. `...` is any text; a row that ends in it has the
beginning of a message. After a whole message a line may go on with what its layout adds (logger, thread); one that ends
in a placeholder has to be cut there first.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

Release = tuple[int, int]
"""Major and minor version."""
OLDEST: Release = (0, 0)
NEWEST: Release = (99, 0)

PLACEHOLDERS: Mapping[str, str] = {
    "group": r"(?P<group>(?:(?! in state ).)+)",
    "member": r"(?P<member>\S.*?)",
    "id": r"(?P<member>\S+)",
    "gen": r"(?P<generation>-?\d+)",
    "groups": r"(?P<groups>.*)",
    "members": r"(?P<members>(?:\w*\(|\[).*[\])])",
    "count": r"(?P<count>\d+)",
    "reason": r"(?P<reason>.*)",
    "leader": r"(?P<leader>\S.*?)",
    "error": r"(?P<error>\S.*?)",
    "shares": r"(?P<shares>\{.*\})",
    "partition": r"\(\S+-\d+\)",
    "kind": r"(?:Dynamic|Static)",
    "any": r".*?",
    "word": r"\w+",
    "n": r"-?\d+",
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
    """A row of a table: the step, the releases that write it, and the regular expression of the message.

    `start` is the text before the first placeholder, which sorts most rows out quickly.
    """

    step: str
    since: Release
    until: Release
    start: str
    pattern: re.Pattern[str]
    end: End


@dataclass(frozen=True, slots=True)
class LogWriter:
    """A program that logs: its name, what its messages begin with, and the table of its messages.

    The groups of `anchor` are fields of every message. A message that is in no table is a gap of its group, if the
    program `tells_all`; clients tell much that is no step.
    """

    name: str
    anchor: re.Pattern[str]
    forms: tuple[MessageForm, ...]
    tells_all: bool = True


@dataclass(frozen=True, slots=True)
class LogStep:
    """What a message says: the step with its fields; "" if the message is in no table, "-" if it is no step.

    `node` names a broker. `form` is the row of the table of `writer`. `tail` is what follows the message in its line,
    None if that cannot be told from it.
    """

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    node: str = ""
    writer: LogWriter | None = None
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
    first, last = parse_release(since) if since else OLDEST, parse_release(until) if until else NEWEST
    return MessageForm(step, first, last, re.split(r"<|\.\.\.", whole)[0], pattern, end)


def parse_release(text: str) -> Release:
    """A release by its number: `2.8`."""
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


NAMED_GROUP = re.compile(
    r"\[Group(?:Id)?[ =](?P<id>[^\]]+)\]|\b[Gg]roup:? (?P<name>(?!metadata|coordinator|id\b)\S+)[ .,]"
)
"""The group that a message names which is in no table."""


def parse_message(writers: Sequence[LogWriter], text: str, cut_tail: "re.Pattern[str] | None" = None) -> LogStep:
    """What the message says with which `text` begins; `cut_tail` finds what the layout adds to every line."""
    for writer in writers:
        anchor = writer.anchor.match(text)
        if anchor is not None:
            context = {name: value for name, value in anchor.groupdict().items() if value}
            node = context.pop("node", "")
            return parse_words(writer, text[anchor.end() :], (context, node), cut_tail)
    return LogStep("")


def parse_words(
    writer: LogWriter, text: str, told: "tuple[dict[str, Any], str]", cut_tail: "re.Pattern[str] | None"
) -> LogStep:
    """What a message of this program says; `told` are the fields of its anchor, and the node."""
    context, node = told
    inner = text if cut_tail is None else cut_tail.sub("", text, count=1)
    for form in writer.forms:
        if not text.startswith(form.start):
            continue
        by_line = form.end is End.LINE and cut_tail is not None
        found = form.pattern.fullmatch(inner) if by_line else form.pattern.match(text)
        if found is not None and form.step == "-":
            return LogStep("-", context | parse_fields(found), node, writer)
        if found is not None:
            tail = text[found.end() :] if form.end is End.MESSAGE else None
            return LogStep(form.step, context | parse_fields(found), node, writer, form, tail)
    if not writer.tells_all:
        return LogStep("-", context, node, writer)
    named = NAMED_GROUP.search(inner)
    group = named and (named["id"] or named["name"])
    return LogStep("", {"group": group.rstrip(".")} if group else {}, node, writer)


def parse_fields(found: re.Match[str]) -> dict[str, Any]:
    """The fields of a matched line, with numbers as integers."""
    told = {name: value for name, value in found.groupdict().items() if value is not None}
    return {name: int(value) if name in NUMERIC_FIELDS else value for name, value in told.items()}


def name_writers(seen: "Iterable[tuple[str, MessageForm]]") -> str:
    """The programs, and their releases, that write all these messages; each with the name of its program."""
    forms: dict[str, set[MessageForm]] = {}
    for name, form in seen:
        forms.setdefault(name, set()).add(form)
    return ", ".join(name_releases(name, forms[name]) for name in sorted(forms))


def name_releases(name: str, forms: "set[MessageForm]") -> str:
    """The releases of a program that write all these messages."""
    since, until = max(each.since for each in forms), min(each.until for each in forms)
    if since > until:
        return f"several releases of {name}"
    first, last = (".".join(map(str, each)) for each in (since, until))
    if until == NEWEST:
        return name if since == OLDEST else f"{name} {first} or newer"
    return f"{name} {first}" if since == until else f"{name} {first} to {last}"
