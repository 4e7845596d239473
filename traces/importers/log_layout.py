"""Learns how a log writes its lines: where its times are, what stands around a message, and in what encoding.

The message of a coordinator, or of a client, is found by its beginning. What stands before it is a prefix, in which
times are looked for; what follows is a tail, whose shape is learnt from the messages that end by themselves. So a
layout needs no name to be read. A row may be a JSON document, or hold one; then other fields may have the time.
"""

import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fencepost.traces.files.trace_files import TraceError

# --- The rows of a file, whatever its encoding.

MAX_LINE_CHARACTERS = 1 << 20
"""Longer lines are cut."""
MAX_DOCUMENT_BYTES = 256 << 20
"""A file that is one JSON document is read up to this size."""
GZIP = b"\x1f\x8b"
ENCODINGS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
"""Byte order marks."""
COLOUR = re.compile(r"(?:\x1b|#033)\[[0-9;]*[A-Za-z]")


@contextmanager
def open_bytes(path: Path) -> Iterator[Any]:
    """A file, decompressed if it begins like gzip."""
    with path.open("rb") as file:
        if file.peek(2)[:2] != GZIP:
            yield file
            return
        with gzip.GzipFile(fileobj=file) as inner, io.BufferedReader(inner) as buffered:
            yield buffered


def encoding_of(head: bytes) -> str:
    """The encoding of a text by its first bytes."""
    for mark, name in ENCODINGS:
        if head.startswith(mark):
            return name
    zeros = head[:200].count(0)
    if zeros * 3 > len(head[:200]) and head[:2] not in (b"\0\0",):
        return "utf-16-le" if head[1:2] == b"\0" else "utf-16-be"
    return "utf-8"


def read_log_lines(path: Path, max_characters: int = MAX_LINE_CHARACTERS) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line of a log, which may be compressed with gzip; longer lines are cut.

    Raises `TraceError` if the file cannot be read.
    """
    number = 0
    try:
        with open_bytes(path) as file:
            encoding = encoding_of(file.peek(256)[:256])
            with io.TextIOWrapper(file, encoding=encoding, errors="replace") as text:
                while row := text.readline(max_characters):
                    number += 1
                    yield number, row
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(str(path), number, f"cannot be read: {reason}") from None


# --- Times.

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAY_MS = 86_400_000
_CLOCK = r"(?P<h>[01]\d|2[0-3]):(?P<m>[0-5]\d):(?P<s>[0-5]\d|60)(?:[.,:](?P<f>\d{1,9}))?(?!\d)"
_ZONE = r"(?: ?(?P<z>Z|UTC|GMT|[+-]\d\d:?\d\d)(?![\w:]))?"
_MONTH = r"(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
STAMPS = tuple(
    re.compile(form)
    for form in (
        rf"(?<!\d)(?P<y>\d{{4}})[-/.](?P<mo>\d\d)[-/.](?P<d>\d\d)[T _:]{_CLOCK}{_ZONE}",
        rf"(?<!\d)(?P<y>\d{{4}})(?P<mo>\d\d)(?P<d>\d\d)[T _-]{_CLOCK}{_ZONE}",
        rf"(?<!\d)(?P<d>\d\d?)[-/. ]{_MONTH}[-/. ](?P<y>\d{{4}})[ :,]+{_CLOCK}{_ZONE}",
        rf"\b{_MONTH} +(?P<d>\d\d?),? +(?P<y>\d{{4}}),?(?: @)? +{_CLOCK}{_ZONE}",
        rf"\b{_MONTH} +(?P<d>\d\d?) {_CLOCK}(?: (?P<y>\d{{4}}))?",
        rf"(?<![\d:.]){_CLOCK}{_ZONE}",
        r"(?<![\w.:-])(?P<epoch>1\d{9})(?:\.(?P<f>\d{1,9})|(?P<more>\d{3}|\d{6}|\d{9}))?(?![\w.:-])",
    )
)
"""How logs write a time; earlier forms come first where two of them fit."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time in milliseconds since 1970, or since midnight if it has no date; `digits` after the second were told."""

    time: int
    digits: int
    has_date: bool = True
    has_year: bool = True
    has_zone: bool = False


def find_stamps(text: str) -> list[Stamp]:
    """The times in a text, from left to right."""
    found: list[tuple[int, int, Stamp]] = []
    for form in STAMPS:
        for each in form.finditer(text):
            stamp = read_stamp(each.groupdict())
            if stamp is not None and all(each.end() <= start or each.start() >= end for start, end, _ in found):
                found.append((each.start(), each.end(), stamp))
    return [stamp for _, _, stamp in sorted(found, key=lambda each: each[0])]


def read_stamp(parts: dict[str, str | None]) -> Stamp | None:
    """The time in the parts of a stamp; None if there is no such day."""
    if parts.get("epoch"):
        more = parts.get("f") or parts.get("more") or ""
        return Stamp(int(parts["epoch"] or 0) * 1_000 + int(more[:3].ljust(3, "0")), len(more), has_zone=True)
    fraction = parts.get("f") or ""
    hour, minute, second = (int(parts[name] or 0) for name in "hms")
    clock = ((hour * 60 + minute) * 60 + second) * 1_000 + int(fraction[:3].ljust(3, "0"))
    if not parts.get("d"):
        return Stamp(clock, len(fraction), has_date=False)
    month = MONTHS.index((parts["mon"] or "").lower()) + 1 if parts.get("mon") else int(parts["mo"] or 0)
    year = parts.get("y")
    try:
        day = datetime(int(year or 2000), month, int(parts["d"] or 0), tzinfo=UTC)
    except ValueError:
        return None
    zone = parts.get("z")
    time = round(day.timestamp()) * 1_000 + clock - zone_offset(zone or "")
    return Stamp(time, len(fraction), has_year=year is not None, has_zone=zone is not None)


def zone_offset(zone: str) -> int:
    """How far a zone is ahead of UTC, in milliseconds."""
    if zone[:1] not in ("+", "-"):
        return 0
    digits = zone[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (minutes if zone[0] == "+" else -minutes) * 60_000


def parse_time(row: str) -> datetime | None:
    """The time at the beginning of a line; None if there is none."""
    found = STAMPS[0].match(row, row.startswith("["))
    stamp = read_stamp({**found.groupdict(), "z": None}) if found is not None else None
    return datetime(1970, 1, 1) + timedelta(milliseconds=stamp.time) if stamp is not None else None


def choose_stamp(stamps: list[Stamp]) -> Stamp | None:
    """The time of a message among those before it: the nearest one in milliseconds, else the most exact. A time of day
    gets its date from another one."""
    if not stamps:
        return None
    exact = [stamp for stamp in stamps if stamp.digits >= 3]
    best = exact[-1] if exact else max(reversed(stamps), key=lambda each: (each.digits, each.has_date, each.has_year))
    dated = next((stamp for stamp in reversed(stamps) if stamp.has_date and stamp.has_year), None)
    if (best.has_date and best.has_year) or dated is None:
        return best
    apart = (best.time - dated.time + DAY_MS // 2) % DAY_MS - DAY_MS // 2
    return Stamp(dated.time + apart, best.digits)


# --- Documents.

TIME_FIELD = re.compile(r"time|date|instant|(?:^|[@_.])ts?$", re.IGNORECASE)
LATE_FIELD = re.compile(r"ingest|receiv|collect|observ|import", re.IGNORECASE)
"""Names of fields that say when somebody else had the message."""


MEMBER_FIELDS: Mapping[str, str] = {
    "group": "group",
    "groupid": "group",
    "memberid": "member",
    "generation": "generation",
    "generationid": "generation",
    "clientid": "client",
    "leaderid": "leader",
    "err": "error",
}
"""Fields that clients give to their messages, by their names without `_`."""
LOGFMT = re.compile(r'([\w.]+)=("(?:[^"\\]|\\.)*"|\S+)')
NUMBERS = re.compile(r"\[(?:\d{1,3}, ?){20}")
"""Bytes as numbers: journald's way to write a message with colours."""


def flatten(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The plain values in a JSON document, each with its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        if value and all(type(each) is int and 0 <= each < 256 for each in value):
            yield name, bytes(value).decode(errors="replace")
        else:
            for index, inner in enumerate(value):
                yield from flatten(inner, f"{name}.{index}" if name else str(index))
    else:
        yield name, value


def document_stamps(fields: list[tuple[str, Any]], message: str) -> list[Stamp]:
    """The times in the fields of a document beside the message: the likeliest last."""
    named: list[tuple[bool, bool, Stamp]] = []
    values = dict(fields)
    for name, value in fields:
        if name == message or isinstance(value, bool) or not isinstance(value, (str, int, float)):
            continue
        text = f"{value:.9f}" if isinstance(value, float) else str(value)
        if name.endswith("epochSecond"):
            nanos = int(values.get(name.removesuffix("epochSecond") + "nanoOfSecond") or 0)
            named.append((True, True, Stamp(int(value) * 1_000 + nanos // 1_000_000, 9, has_zone=True)))
        elif name.endswith("nanoOfSecond"):
            continue
        else:
            is_time, is_own = TIME_FIELD.search(name) is not None, LATE_FIELD.search(name) is None
            named += [(is_own, is_time, stamp) for stamp in find_stamps(text) if len(text) < 60]
    return [stamp for _, _, stamp in sorted(named, key=lambda each: each[:2])]


# --- Rows.


@dataclass(frozen=True, slots=True)
class LogRow:
    """A row in which a message begins: the text before it, the text from there on, and the document that holds it."""

    number: int
    prefix: str
    text: str
    fields: tuple[str, ...] = ()
    stamps: tuple[Stamp, ...] = ()
    """The times in other fields of the document."""
    told: Mapping[str, Any] = field(default_factory=dict)
    """What other fields of the document say of the member whose client wrote it."""


def split_row(number: int, row: str, anchor: re.Pattern[str]) -> LogRow | None:
    """A row split where a message begins; None if none does."""
    found = anchor.search(row)
    if found is None and "{" not in row and 'msg="' not in row and not NUMBERS.search(row):
        return None
    if 'msg="' in row:
        pairs = {name: text.strip('"') for name, text in LOGFMT.findall(row)}
        return split_document(number, LOGFMT.split(row, maxsplit=1)[0], pairs, anchor)
    brace = row.find("{", 0, found.start() if found is not None else len(row))
    if brace >= 0:
        try:
            value, _ = json.JSONDecoder().raw_decode(row, brace)
        except ValueError:
            value = None
        if value is not None:
            return split_document(number, row[:brace], value, anchor)
    if "\x1b" in row or "#033" in row:
        row = COLOUR.sub("", row)
        found = anchor.search(row)
    if found is None:
        return None
    prefix, text = row[: found.start()], row[found.start() :].rstrip("\r\n")
    if prefix.count('"') % 2:  # a cell of a table, or a text in a document that is no whole one
        text = unquote(text)
    return LogRow(number, prefix, text)


def split_document(number: int, prefix: str, value: Any, anchor: re.Pattern[str]) -> LogRow | None:
    """The message in a document, with the times of its other fields."""
    fields = list(flatten(value))
    for name, text in fields:
        inner = split_row(number, text.partition("\n")[0], anchor) if isinstance(text, str) else None
        if inner is not None:
            names = (*(name for name, _ in fields), *inner.fields)
            times = (*find_stamps(prefix), *document_stamps(fields, name), *inner.stamps)
            return LogRow(number, inner.prefix, inner.text, names, times, {**told_fields(fields), **inner.told})
    return None


def told_fields(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """What fields of a document say of a member."""
    named = ((MEMBER_FIELDS.get(name.rpartition(".")[2].replace("_", "").lower()), value) for name, value in fields)
    told: dict[str, Any] = {name: str(value) for name, value in named if name is not None and value not in (None, "")}
    generation = told.pop("generation", "")
    return told | ({"generation": int(generation)} if re.fullmatch(r"-?\d{1,9}", generation) else {})


def unquote(text: str) -> str:
    """The text up to its closing quotation mark, which is neither doubled nor behind a backslash."""
    inner = re.match(r'(?:[^"\\]|""|\\.)*', text)
    whole = inner[0] if inner is not None else text
    return re.sub(r"\\([\"\\/])", r"\1", re.sub(r"(?:\\n)+$", "", whole.replace('""', '"')))


MARK = "roup"
"""Is in every line about a group."""


def read_rows(path: Path, anchor: re.Pattern[str], count: Callable[[], None]) -> Iterator[tuple[LogRow, str]]:
    """Yield the rows with a message, each with the row before it; `count` is called for every line.

    Raises `TraceError`.
    """
    before, first = "", True
    for number, text in read_log_lines(path):
        count()
        if first and text.lstrip("\ufeff \t")[:1] in ("{", "["):
            units = read_document(path, text)
            if units is not None:
                yield from (
                    (row, "") for unit in units if (row := split_document(number, "", unit, anchor)) is not None
                )
                return
        first = False
        row = split_row(number, text, anchor) if MARK in text or NUMBERS.search(text) else None
        if row is not None:
            yield row, before
        before = text


def read_document(path: Path, first: str) -> list[Any] | None:
    """The entries of a file that is a single JSON document; None if it is not."""
    try:
        json.loads(first)
        return None if first.lstrip()[:1] == "{" else read_entries(path)
    except ValueError as error:
        is_over = str(error).startswith(("Expecting value", "Expecting property name", "Expecting ',' delimiter"))
        return read_entries(path) if is_over and len(first.rstrip()) < 40 and "\n" in first else None


def read_entries(path: Path) -> list[Any] | None:
    """The entries in the longest list of a JSON document; None if the file is not one."""
    text = "".join(row for _, row in read_log_lines(path))
    if len(text) > MAX_DOCUMENT_BYTES:
        return None
    try:
        return longest_list(json.loads(text))
    except ValueError:
        return None


def longest_list(value: Any) -> list[Any]:
    """The longest list of documents or lists in a document, however deep."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [longest_list(each) for each in inner if isinstance(each, (dict, list))]
    own = [each for each in value if isinstance(each, (dict, list))] if isinstance(value, list) else []
    return max([*found, own], key=len)


# --- The layout.

LOGGER_TAIL = re.compile(r"(?: \((?:[\w$]+\.)+[\w$]+(?::\d+)?\)(?: \[[^\]\[]*\])?)?\s*$")
"""Logger and thread after a message, where nothing was learnt."""
WORD = re.compile(r"[\w.$:/@-]+")
SPLIT = re.compile(f"({WORD.pattern})")
MAX_SHAPES = 40
PLATFORMS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(form))
    for name, form in (
        ("grep -n", r"^\d{1,9}:(?!\d\d:)"),
        ("docker compose", r"^\S+ +\| "),
        ("kubectl --prefix", r"^\[pod/"),
        ("CRI", r"\b(?:stdout|stderr) [FP] "),
        ("syslog (RFC 5424)", r"^<\d+>\d "),
        (
            "journald or syslog",
            r"^(?:<\d+>)?(?:[A-Z][a-z]{2} +\d+ [\d:]+|\d{4}-\d\d-\d\dT\S+) \S+ [\w./-]+(?:\[\d+\])?: ",
        ),
        ("kubectl --timestamps", r"^\d{4}-\d\d-\d\dT[\d:]+\.\d{6,9}Z "),
        ("a table with commas", r'^"'),
        ("a table with tabs", r"^[^\t]*\t"),
        ("grep -H", r"^(?!\d{4}-\d\d-)[\w./-]+:(?:\d+:)?[\[\d]"),
    )
)
"""What platforms put before a line: for the name only."""
DOCUMENT_KINDS = (
    ("docker json-file", {"log", "stream"}),
    ("ECS JSON", {"@timestamp", "log.level"}),
    ("Log4j's JsonLayout", {"loggerName", "message"}),
    ("journald JSON", {"MESSAGE", "__REALTIME_TIMESTAMP"}),
)
LEVEL = re.compile(r"\b(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b", re.IGNORECASE)


@dataclass(slots=True)
class Layout:
    """What is learnt of the lines of one file."""

    platforms: Counter[str] = field(default_factory=Counter)
    tails: Counter[str] = field(default_factory=Counter)
    """Shapes of what follows a message."""
    stamped: int = 0
    unstamped: int = 0
    headed: int = 0
    """How many rows have a time, how many have none, and how many have it on the row before."""
    digits: Counter[int] = field(default_factory=Counter)
    cut_tail: re.Pattern[str] = LOGGER_TAIL
    """What finds the tail of a line."""
    starts: tuple[str, ...] = ()
    """How the tails of lines begin, if all lines have one."""

    def learn(self, row: LogRow, before: str, tail: str | None) -> None:
        """Take in a row, and the one before it."""
        self.platforms[platform_of(row)] += 1
        own = stamp_of(row)
        stamp = own or stamp_of(row, before)
        self.headed += own is None and stamp is not None
        self.stamped += stamp is not None
        self.unstamped += stamp is None
        if stamp is not None:
            self.digits[stamp.digits] += 1
        if tail is not None and (len(self.tails) < MAX_SHAPES or shape_of(tail) in self.tails):
            self.tails[shape_of(tail)] += 1

    def conclude(self) -> None:
        """Take the shapes of tails that many lines have for those of the layout."""
        total = self.tails.total()
        common = sorted((shape for shape, count in self.tails.items() if count * 10 >= total), key=len, reverse=True)
        if total:
            self.cut_tail = re.compile(rf"(?:{'|'.join(filter(None, common))})\s*$")
        if total > 2 and "" not in common:
            self.starts = tuple(shape[:3] for shape in common)

    def find_time(self, row: LogRow, before: str) -> Stamp | None:
        """The time of a row, which is on the row before if that is so in the layout."""
        return stamp_of(row, before if 2 * self.headed > self.stamped else "")

    def is_cut(self, tail: str | None) -> bool:
        """Whether a line with this tail lacks an end that others have."""
        return bool(self.starts) and tail is not None and not shape_of(tail).startswith(self.starts)

    @property
    def name(self) -> str:
        """The platform that wrote most of the lines; "" for none."""
        return self.platforms.most_common(1)[0][0] if self.platforms else ""


def shape_of(tail: str) -> str:
    """The regular expression of a tail with other words."""
    return "".join(
        WORD.pattern if number % 2 else re.escape(part) for number, part in enumerate(SPLIT.split(tail.rstrip()))
    )


def platform_of(row: LogRow) -> str:
    """The name of what was put around a line."""
    if row.fields:
        names = {name.rpartition(".")[2] if name.rpartition(".")[2] != "level" else name for name in row.fields}
        return next((name for name, keys in DOCUMENT_KINDS if keys <= names | set(row.fields)), "JSON")
    return next((name for name, form in PLATFORMS if form.search(row.prefix)), "")


def level_of(row: LogRow) -> str:
    """The level of a line, in capitals; "" if there is none."""
    found = LEVEL.findall(row.prefix)
    return found[-1].upper() if found else ""


def stamp_of(row: LogRow, before: str = "") -> Stamp | None:
    """The time of a row: before its message, in its document, or else on the row before."""
    own = find_stamps(row.prefix)
    if row.stamps and not any(stamp.digits >= 3 and stamp.has_date for stamp in own):
        return choose_stamp([*row.stamps, *own])
    return choose_stamp(own) or choose_stamp(find_stamps(before))
