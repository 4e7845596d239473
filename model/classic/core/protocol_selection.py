"""The election of a protocol (coordinator.md 4.1) and of a leader (4.3)."""

from fencepost.model.classic.core.member_table import is_member, offered_by_all
from fencepost.model.classic.core.state import Group, Slot
from fencepost.model.logic import Truth
from fencepost.model.sorts import MemberId, Metadata, ProtocolName


def vote(group: Group, slot: Slot) -> ProtocolName | None:
    """The first protocol in the member's own list that every member offers, None if there is none."""
    choice: ProtocolName | None = None
    for protocol in reversed(slot.protocols):
        choice = protocol.name if offered_by_all(group, protocol.name) else choice
    return choice


def select_protocol(group: Group, preferred: ProtocolName | None) -> ProtocolName | None:
    """The protocol with the most votes; `preferred` among several such (LAT-03), else the first of them."""
    votes = tuple(vote(group, slot) if is_member(slot) else None for slot in group.slots)
    tallies = tuple(sum(other is not None and other == name for other in votes) for name in votes)
    wins = tuple(
        name is not None and all(tally >= other for other in tallies)
        for name, tally in zip(votes, tallies, strict=True)
    )
    choice: ProtocolName | None = None
    for name, win in zip(reversed(votes), reversed(wins), strict=True):
        choice = name if win else choice
    fits = any(win and name == preferred for name, win in zip(votes, wins, strict=True))
    return preferred if preferred is not None and fits else choice


def choose_leader(group: Group, preferred: MemberId | None) -> MemberId | None:
    """Who leads: the leader if it rejoined, else `preferred` or the first that did; None if nobody did."""
    choice: MemberId | None = None
    for slot in reversed(group.slots):
        choice = slot.id if has_rejoined(slot) else choice
    fits = any(has_rejoined(slot) and slot.id == preferred for slot in group.slots)
    choice = preferred if preferred is not None and fits else choice
    stays = any(has_rejoined(slot) and slot.id == group.leader for slot in group.slots)
    return group.leader if group.leader is not None and stays else choice


def has_rejoined(slot: Slot) -> Truth:
    """The slot holds a member with a parked JoinGroup."""
    return is_member(slot) and slot.join != 0


def metadata_for(slot: Slot, name: ProtocolName | None) -> Metadata | None:
    """The metadata that the member offers under this protocol name, None if it does not."""
    metadata: Metadata | None = None
    for protocol in reversed(slot.protocols):
        metadata = protocol.metadata if protocol.name == name else metadata
    return metadata
