"""The history of groups in words: the causes and delays of rebalances, and the members that came and went.

Each protocol has its own words for the parts of a group's history.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from fencepost.model.protocols import find_protocol, load_part
from fencepost.traces.history.builder import (
    CauseKind,
    ChangeCause,
    GroupTimeline,
    HoldKind,
    PhaseHold,
    TimelineRebalance,
    TraceHistory,
)

DAY_MS = 86_400_000
MAX_NAMED = 4
"""How many members a sentence names."""
UUID_TAIL = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")


@dataclass(frozen=True, slots=True)
class HistoryWords:
    """The words of one protocol. A change of all members has two phases, and leads to a numbered round."""

    change: str = "rebalance"
    phases: tuple[str, str] = ("Join phase", "Sync phase")
    round: str = "generation"
    round_mark: str = "g"
    """What stands before the number of a round where there is little room."""
    last: str = "joined last"
    """What the member did that a phase waited for longest."""
    states: Mapping[str, str] = field(
        default_factory=lambda: {"Preparing": "PreparingRebalance", "Completing": "CompletingRebalance"}
    )
    """The states as tools call them, where that is not the name of the phase."""
    bands: Mapping[str, str] = field(default_factory=dict)
    """The phases as a drawing calls them, where that is not their name."""
    seen_by: Mapping[str, str] = field(
        default_factory=lambda: {
            "log": "the log of a coordinator",
            "offsets topic": "what coordinators stored",
            "client log": "the logs of clients",
            "clients": "messages between clients and brokers",
            "coordinator": "messages as the coordinator handles them",
        }
    )
    """Where a trace was seen, by its kind."""
    question: str = "Does the coordinator keep the protocol?"

    def state(self, phase: str) -> str:
        """The name of a state."""
        return self.states.get(phase, phase) or "unknown"

    def band(self, phase: str) -> str:
        """The name of a phase in a drawing."""
        return self.bands.get(phase, phase)


CLASSIC_WORDS = HistoryWords()


def words_of(histories: Sequence[TraceHistory]) -> HistoryWords:
    """The words for histories, all of one protocol."""
    entry = find_protocol(histories[0].protocol) if histories else None
    words: HistoryWords = CLASSIC_WORDS if entry is None or not entry.words else load_part(entry.words)
    return words


class MemberNames:
    """Short names for the members of a group: without the random end of their ids, as far as they stay different."""

    def __init__(self, members: Iterable[str]) -> None:
        self.names: dict[str, str] = {}
        ids = list(dict.fromkeys(members))
        for length in (5, 9, 37):
            short = {id: shorten_id(id, length) for id in ids if id not in self.names}
            taken = list(short.values())
            self.names |= {id: name for id, name in short.items() if taken.count(name) == 1 or length == 37}

    def name(self, member: str) -> str:
        """The short name of a member."""
        return self.names.get(member, member)

    def join(self, members: Sequence[str]) -> str:
        """Members in a row; of many only the first."""
        named = [self.name(member) for member in members[:MAX_NAMED]]
        more = len(members) - len(named)
        if more:
            return f"{', '.join(named)} and {more} more"
        return " and ".join(filter(None, (", ".join(named[:-1]), *named[-1:])))


def names_in(timeline: GroupTimeline) -> MemberNames:
    """Short names for all members that a timeline names."""
    found = [each.member for each in (*timeline.members, *timeline.past_members)]
    for each in timeline.rebalances:
        found += (*each.came, *each.cause.members, *(member for member, _ in each.gone))
        for hold in (each.join_hold, each.sync_hold):
            found += hold.members if hold is not None else ()
    return MemberNames(found)


def shorten_id(member: str, length: int) -> str:
    """A member id with this much of its random end."""
    found = UUID_TAIL.search(member)
    return member if found is None else member[: found.start() + length]


class Clock:
    """Tells the times of a trace as the wall clock had them, or from its beginning on if it does not say when that
    was."""

    def __init__(self, began: str) -> None:
        self.began: datetime | None = None
        with suppress(ValueError):
            self.began = datetime.fromisoformat(began)

    def time(self, milliseconds: int) -> str:
        """A time of day, or the seconds since the trace began."""
        if self.began is None:
            return f"{milliseconds / 1_000:.3f} s"
        moment = self.began + timedelta(milliseconds=milliseconds)
        day = f"{moment:%Y-%m-%d} " if moment.date() != self.began.date() else ""
        return f"{day}{moment:%H:%M:%S}.{moment.microsecond // 1_000:03}"

    def tick(self, milliseconds: int, span: int) -> str:
        """A time on an axis that spans so many milliseconds: as short as tells it from its neighbours."""
        if self.began is None or span < DAY_MS:
            return self.time(milliseconds).rpartition(" ")[2] if self.began is not None else self.time(milliseconds)
        return f"{self.began + timedelta(milliseconds=milliseconds):%m-%d %H:%M}"

    def time_of_day(self) -> int:
        """The milliseconds from midnight to the beginning of the trace; 0 if it does not say when that was."""
        if self.began is None:
            return 0
        midnight = self.began.replace(hour=0, minute=0, second=0, microsecond=0)
        return round((self.began - midnight) / timedelta(milliseconds=1))

    def start(self) -> str:
        """When the trace began; "" if it does not say."""
        return "" if self.began is None else f"{self.began:%Y-%m-%d %H:%M:%S}{self.began:%z}"


def format_span(milliseconds: int) -> str:
    """A duration in words: 250 ms, 31.2 s, 3 min 20 s, 2 h 5 min."""
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.1f} s"
    minutes, seconds = divmod(round(milliseconds / 1_000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def count_of(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def describe_cause(cause: ChangeCause, names: MemberNames) -> str:
    """A cause as a clause."""
    who = names.join(cause.members) or "a member"
    they, was, its = ("they", "were", "their") if len(cause.members) > 1 else ("it", "was", "its")
    timeout = f" ({format_span(cause.timeout)})" if cause.timeout is not None else ""
    told = f" (the client says: {cause.detail})" if cause.detail else ""
    match cause.kind:
        case CauseKind.CAME:
            return f"{who} came{told}"
        case CauseKind.REJOINED:
            return f"{who} asked to join again{told}"
        case CauseKind.LEFT:
            return f"{who} left{told}"
        case CauseKind.SESSION:
            return f"{who} {was} silent for {its} session timeout{timeout}"
        case CauseKind.NOT_BACK:
            return f"{who} did not join again within the rebalance timeout{timeout}"
        case CauseKind.NO_SYNC:
            return f"{who} sent no SyncGroup within the rebalance timeout{timeout}"
        case CauseKind.REPLACED:
            return f"a static member came back and has another member id: {names.join(cause.members)}"
        case CauseKind.UNKNOWN_TO_COORDINATOR:
            return f"the coordinator did not know {who} any more"
        case CauseKind.MISSING:
            return f"{who} {was} not in the next generation, and the trace does not show when {they} went"
        case CauseKind.CLOSED:
            return f"the connection of {who} ended"
        case CauseKind.CRASHED:
            return f"{who} died"
        case CauseKind.OTHER:
            return cause.detail or "the trace does not show why"
        case CauseKind.NOT_SHOWN:
            return "the trace does not show why"


def describe_hold(
    hold: PhaseHold, gone: Mapping[str, ChangeCause], names: MemberNames, words: HistoryWords = CLASSIC_WORDS
) -> str:
    """What held a phase up, as a clause; `gone` has the members that went meanwhile."""
    who, waited = names.join(hold.members), format_span(hold.waited)
    match hold.kind:
        case HoldKind.LAST_TO_JOIN:
            return f"{who} {words.last}, {waited} after it began"
        case HoldKind.GONE:
            causes = dict.fromkeys(gone[member].kind for member in hold.members if member in gone)
            first = gone.get(hold.members[0])
            if first is None or len(causes) > 1:
                return f"held up by {who}, until {'it was' if len(hold.members) == 1 else 'they were'} removed"
            return f"held up by {who}; {describe_cause(replace(first, members=hold.members), names)}"
        case HoldKind.INITIAL_DELAY:
            return "the broker's initial rebalance delay"
        case HoldKind.LEADER:
            return f"the leader {who} sent the assignment after {waited}"
        case HoldKind.NO_SYNC:
            return f"held up by {who}, without a SyncGroup"
        case HoldKind.AWAITED:
            return f"held up by {who}"
        case HoldKind.NOT_SHOWN:
            return "the trace does not show who held it up"


def rebalance_heading(rebalance: TimelineRebalance, end: int, words: HistoryWords = CLASSIC_WORDS) -> str:
    """A rebalance in a line: the generations and how long it took."""
    took = format_span(rebalance.duration(end))
    old, new = rebalance.old_generation, rebalance.generation
    if rebalance.ended is None:
        return f"{f'from {words.round} {old}, ' if old is not None else ''}NOT OVER after {took}"
    if rebalance.joined is None or new is None:
        return f"{f'from {words.round} {old}, ' if old is not None else ''}{took}"
    return f"{words.round} {f'{old} → ' if old is not None else ''}{new}, {took}"


def rebalance_sentences(
    rebalance: TimelineRebalance, end: int, names: MemberNames, words: HistoryWords = CLASSIC_WORDS
) -> Iterator[str]:
    """A rebalance in sentences."""
    first, second = words.phases
    yield sentence(describe_cause(rebalance.cause, names))
    gone = dict(rebalance.gone)
    joined = rebalance.joined if rebalance.joined is not None else rebalance.ended
    join_time = (end if joined is None else joined) - rebalance.began
    if rebalance.join_hold is not None:
        yield f"{first} {format_span(join_time)}: {describe_hold(rebalance.join_hold, gone, names, words)}."
    took = (end if rebalance.ended is None else rebalance.ended) - (rebalance.joined or 0)
    if rebalance.joined is not None and (took or rebalance.sync_hold is not None):
        hold = f": {describe_hold(rebalance.sync_hold, gone, names, words)}" if rebalance.sync_hold is not None else ""
        yield f"{second} {format_span(took)}{hold}."
    blamed = set(rebalance.cause.members)
    blamed.update(rebalance.join_hold.members if rebalance.join_hold is not None else ())
    others = [(member, cause) for member, cause in rebalance.gone if member not in blamed]
    for _, cause in others[:MAX_NAMED]:
        yield sentence(f"Meanwhile {describe_cause(cause, names)}")
    if len(others) > MAX_NAMED:
        yield f"{len(others) - MAX_NAMED} more members went."
    came = [member for member in rebalance.came if member not in rebalance.cause.members]
    if came:
        yield f"{names.join(came)} came."
    yield outcome_sentence(rebalance, words)


def outcome_sentence(rebalance: TimelineRebalance, words: HistoryWords = CLASSIC_WORDS) -> str:
    """How a rebalance ended."""
    if rebalance.ended is None:
        return "It was not over when the trace ended."
    if rebalance.phase == "Preparing":
        return f"Another {words.change} began before it was over."
    members = (
        f" with {count_of(rebalance.members, 'member')}" if rebalance.members and rebalance.phase == "Stable" else ""
    )
    return f"Then {words.state(rebalance.phase)}{members}."


def sentence(clause: str) -> str:
    """A clause as a sentence."""
    return f"{clause[:1].upper() if clause.startswith(('the ', 'a ')) else clause[:1]}{clause[1:].rstrip('.')}."


def group_summary(timeline: GroupTimeline, words: HistoryWords = CLASSIC_WORDS) -> str:
    """A group in a line."""
    told = [count_of(timeline.rebalance_count, words.change)]
    lived = timeline.last - timeline.first
    if timeline.rebalance_count:
        share = f" ({timeline.rebalance_time / lived:.1%} of the time)" if lived else ""
        told.append(f"{format_span(timeline.rebalance_time)} in all{share}")
    return f"{', '.join(told)}; at the end {state_in_words(timeline, words)}"


def state_in_words(timeline: GroupTimeline, words: HistoryWords = CLASSIC_WORDS) -> str:
    """The state of a group at the end, in words."""
    told = [words.state(timeline.phase)]
    if timeline.phase == "":
        return "its state is not known"
    if timeline.phase != "Dead" and timeline.generation is not None:
        told.append(f"in {words.round} {timeline.generation}")
    if timeline.members:
        told.append(f"with {count_of(len(timeline.members), 'known member')}")
    return " ".join(told)


def history_headline(histories: Sequence[TraceHistory]) -> str:
    """All histories in a line."""
    groups = [timeline for history in histories for timeline in history.groups]
    rebalances = sum(timeline.rebalance_count for timeline in groups)
    count = len(groups) + sum(history.other_groups for history in histories)
    longest = max((timeline.longest for timeline in groups), default=0)
    told = f"{count_of(rebalances, words_of(histories).change)} of {count_of(count, 'group')}"
    if rebalances:
        told += f", the longest {format_span(longest)}"
    stuck = sum(timeline.open_rebalance is not None for timeline in groups)
    return f"{told}; {stuck} not over at the end" if stuck else told


def departure_words(timeline: GroupTimeline) -> str:
    """How many members went, by the reason; "" if none did."""
    reasons = {
        CauseKind.LEFT: "left",
        CauseKind.SESSION: "silent for the session timeout",
        CauseKind.NOT_BACK: "not back within the rebalance timeout",
        CauseKind.NO_SYNC: "without a SyncGroup",
        CauseKind.REPLACED: "replaced",
        CauseKind.CLOSED: "disconnected",
        CauseKind.CRASHED: "died",
    }
    return ", ".join(f"{count} {reasons.get(kind, 'for no reason shown')}" for kind, count in timeline.departures)


def longest_first(timeline: GroupTimeline) -> list[TimelineRebalance]:
    """The rebalances of a group: one that is not over, then the longest first."""
    return sorted(timeline.rebalances, key=lambda each: (each.ended is not None, -each.duration(timeline.last)))
