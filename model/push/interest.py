"""Which topics a group wants: the `topic_count` of a registration, named topics or a wildcard (draft, 5)."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from fencepost.model.errors import FencepostError
from fencepost.model.frozen import fast_frozen


class UnusableInterest(FencepostError):
    """A `topic_count` that says nothing; the message is one clear line."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Interest:
    """Topics by name with the number of streams of each, or a pattern with its number of streams."""

    streams: tuple[tuple[str, int], ...] = ()
    pattern: str = ""
    pattern_streams: int = 1

    def matches(self, topic: str) -> bool:
        """Whether the topic is named, or fits the pattern."""
        if self.pattern:
            return re.fullmatch(self.pattern, topic) is not None
        return any(name == topic for name, _ in self.streams)

    def threads_for(self, topic: str) -> int:
        """The streams for a topic, 0 for one that is not wanted."""
        if self.pattern:
            return self.pattern_streams if self.matches(topic) else 0
        return dict(self.streams).get(topic, 0)


NO_INTEREST = Interest()
"""No topic is wanted."""


def parse_interest(topic_count: str) -> Interest:
    """The interest in the field `topic_count`: a JSON object of topics with their streams as consumers of that time
    wrote it to ZooKeeper, or `*N*pattern` for a wildcard. Raises `UnusableInterest`."""
    wildcard = re.fullmatch(r"\*(\d+)\*(.+)", topic_count)
    if wildcard:
        try:
            re.compile(wildcard[2])
        except re.error as error:
            raise UnusableInterest(f"topic_count {topic_count!r}: {error}") from error
        return Interest(pattern=wildcard[2], pattern_streams=max(1, int(wildcard[1])))
    try:
        streams = json.loads(topic_count)
    except ValueError as error:
        raise UnusableInterest(f"topic_count {topic_count!r}: neither JSON nor '*N*pattern'") from error
    if (
        not isinstance(streams, dict)
        or not streams
        or not all(type(one) is int and one > 0 for one in streams.values())
    ):
        raise UnusableInterest(f"topic_count {topic_count!r}: want topics, each with a number of streams")
    return Interest(tuple(sorted(streams.items())))


def format_interest(interest: Interest) -> str:
    """The field `topic_count` of an interest."""
    if interest.pattern:
        return f"*{interest.pattern_streams}*{interest.pattern}"
    return json.dumps(dict(interest.streams))


def matching_topics(interest: Interest, topics: Iterable[str]) -> tuple[str, ...]:
    """The topics that the interest matches, sorted."""
    return tuple(sorted(topic for topic in topics if interest.matches(topic)))
