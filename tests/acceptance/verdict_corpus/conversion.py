"""Traces and verdicts of commit 79b4ef4 in the names of the tree at hand.

Whoever renames something that a trace or a verdict shows enters it here, and nothing else: what the judge says must
stay the same.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.traces.events import FORMAT_VERSION
from tests.acceptance.verdict_corpus.canonical import Plain, in_order

OLD_VERSION = 1
"""The version of the trace format at commit 79b4ef4."""
SORTED = ("violations", "checks", "transitions", "inconclusive")

Names = Mapping[str, str]
"""New names by old ones."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """What has another name since commit 79b4ef4.

    Of traces: keys of the header and of its settings, keys of events, values of `order` and `kind`, names of what
    happened (`api` of events that are no messages), and keys in the bodies of such events by their old names.
    Of verdicts: `words`, also several in a row, such as names of rules; only whole words are replaced.
    """

    header: Names = field(default_factory=dict)
    settings: Names = field(default_factory=dict)
    event: Names = field(default_factory=dict)
    orders: Names = field(default_factory=dict)
    kinds: Names = field(default_factory=dict)
    happenings: Names = field(default_factory=dict)
    bodies: Mapping[str, Names] = field(default_factory=dict)
    words: Names = field(default_factory=dict)

    @property
    def leaves_traces(self) -> bool:
        """Nothing in a trace has another name."""
        traces = (self.header, self.settings, self.event, self.orders, self.kinds, self.happenings, self.bodies)
        return FORMAT_VERSION == OLD_VERSION and not any(traces)


REQUESTS = {
    "Commit by": "OffsetCommit by",
    "Delete": "DeleteGroup",
    "DeleteOffsets": "OffsetDelete",
    "Describe": "DescribeGroup",
    "EndTransaction": "EndTxn",
    "Fetch": "OffsetFetch",
    "Join by": "JoinGroup by",
    "Leave": "LeaveGroup",
    "List": "ListGroups",
    "Sync by": "SyncGroup by",
    "TransactionalCommit": "TxnOffsetCommit",
}
"""How transitions of the model name requests."""
UNCOMPARED = frozenset({"condition"})
"""Fields of old violations that are nothing but texts for a reader, which are worded anew."""
RENAMED = Renamed(
    kinds={"answer": "response"},
    happenings={"evidence": "check"},
    words={"Fresh": "FreshId", **{f"/ {old}": f"/ {new}" for old, new in REQUESTS.items()}},
)


def convert_trace(lines: Iterable[bytes], renamed: Renamed = RENAMED) -> Iterator[bytes]:
    """The lines of an old trace as the tree at hand reads them."""
    if renamed.leaves_traces:
        yield from lines
        return
    for number, line in enumerate(lines):
        convert = convert_event if number else convert_header
        yield json.dumps(convert(json.loads(line), renamed), separators=(",", ":")).encode("ascii") + b"\n"


def convert_header(header: Plain, renamed: Renamed) -> Plain:
    """The header, which tells the new version."""
    settings = with_keys(header["settings"], renamed.settings)
    order = renamed.orders.get(header["order"], header["order"])
    values = header | {"fencepost_trace": FORMAT_VERSION, "settings": settings, "order": order}
    return with_keys(values, renamed.header)


def convert_event(event: Plain, renamed: Renamed) -> Plain:
    """An event; messages have Kafka's names, which stay."""
    values = event | {"kind": renamed.kinds.get(event["kind"], event["kind"])}
    if event["kind"] not in ("request", "answer"):
        happened = event["api"]
        values["api"] = renamed.happenings.get(happened, happened)
        values["body"] = with_keys(event["body"], renamed.bodies.get(happened, {}))
    return with_keys(values, renamed.event)


def with_keys(values: Plain, names: Names) -> Plain:
    """The values under new keys."""
    return {names.get(key, key): value for key, value in values.items()}


def convert_verdict(verdict: Plain, renamed: Renamed = RENAMED) -> Plain:
    """An old verdict as the tree at hand words it."""
    if not renamed.words:
        return verdict
    longest_first = sorted(renamed.words, key=len, reverse=True)
    words = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-]|\.\w)")
    said: Plain = reword(verdict, words, renamed.words)
    return said | {key: in_order(said[key]) for key in SORTED}


def reword(value: Any, words: re.Pattern[str], names: Names) -> Any:
    """A JSON value with new words in all strings but the keys of objects that are fields of a verdict."""
    if isinstance(value, str):
        return words.sub(lambda found: names[found[0]], value)
    if isinstance(value, list):
        return [reword(each, words, names) for each in value]
    if isinstance(value, dict):
        return {
            key: reword_rules(each, words, names) if key == "rules" else reword(each, words, names)
            for key, each in value.items()
            if key not in UNCOMPARED
        }
    return value


def reword_rules(counts: Plain, words: re.Pattern[str], names: Names) -> Plain:
    """How often each rule was seen, by its new name."""
    return {words.sub(lambda found: names[found[0]], rule): count for rule, count in counts.items()}
