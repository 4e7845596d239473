"""The election of a protocol (coordinator.md 4.1) and of a leader (4.3)."""

from fencepost.model.classic.core.member_table import is_member, offered_by_all
from fencepost.model.classic.core.state import Group, Slot
from fencepost.model.logic import Truth, absent, all_, and_, any_, count, ite, not_, or_
from fencepost.model.sorts import MemberId, Metadata, ProtocolName


def vote(group: Group, slot: Slot) -> ProtocolName | None:
    """The first protocol in the member's own list that every member offers, None if there is none."""
    choice: ProtocolName | None = None
    for protocol in reversed(slot.protocols):
        choice = ite(offered_by_all(group, protocol.name), protocol.name, choice)
    return choice


def select_protocol(group: Group, preferred: ProtocolName | None) -> ProtocolName | None:
    """The protocol with the most votes; `preferred` among several such (LAT-03), else the first of them."""
    votes = tuple(ite(is_member(slot), vote(group, slot), None) for slot in group.slots)
    tallies = tuple(count(and_(not_(absent(other)), other == name) for other in votes) for name in votes)
    wins = tuple(
        and_(not_(absent(name)), all_(tally >= other for other in tallies))
        for name, tally in zip(votes, tallies, strict=True)
    )
    choice: ProtocolName | None = None
    for name, win in zip(reversed(votes), reversed(wins), strict=True):
        choice = ite(win, name, choice)
    fits = any_(and_(win, name == preferred) for name, win in zip(votes, wins, strict=True))
    return ite(and_(not_(absent(preferred)), fits), preferred, choice)


def choose_leader(group: Group, preferred: MemberId | None) -> MemberId | None:
    """Who leads: the leader if it rejoined, else `preferred` or the first that did; None if nobody did."""
    choice: MemberId | None = None
    for slot in reversed(group.slots):
        choice = ite(has_rejoined(slot), slot.id, choice)
    fits = any_(and_(has_rejoined(slot), slot.id == preferred) for slot in group.slots)
    choice = ite(and_(not_(absent(preferred)), fits), preferred, choice)
    stays = any_(and_(has_rejoined(slot), slot.id == group.leader) for slot in group.slots)
    return ite(and_(not_(absent(group.leader)), stays), group.leader, choice)


def has_rejoined(slot: Slot) -> Truth:
    """The slot holds a member with a parked JoinGroup."""
    return and_(is_member(slot), slot.join != 0)


def metadata_for(slot: Slot, name: ProtocolName | None) -> Metadata | None:
    """The metadata that the member offers under this protocol name, None if it does not."""
    metadata: Metadata | None = None
    for protocol in reversed(slot.protocols):
        metadata = ite(or_(protocol.name == name), protocol.metadata, metadata)
    return metadata
