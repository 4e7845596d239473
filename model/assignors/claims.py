"""Claims: the partitions that members say they own, and whose claim counts (member.md 5.4, step A)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fencepost.model.assignors.consumer_protocol import decode_cooperative_user_data, decode_sticky_user_data
from fencepost.model.assignors.group import NO_GENERATION, Subscription, TopicPartition
from fencepost.model.assignors.partition_index import PartitionIndex

NO_OWNER = -1
CONTESTED = -2
"""The owner of a partition that several members claim in one generation: nobody's claim counts (KAFKA-12984)."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The partitions that a member says it owns, and the generation in which they were assigned to it."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION


ReadClaim: TypeAlias = Callable[[Subscription], Claim]
"""How an assignor reads the claim of a member."""


def sticky_claim(subscription: Subscription) -> Claim:
    """The claim that `sticky` goes by: that of the user data, whatever the other fields say (STICKY-10).

    An eager member owns nothing when it joins. User data that cannot be read claim nothing (ASSIGN-07).
    """
    decoded = decode_sticky_user_data(subscription.user_data)
    return Claim() if decoded is None else Claim(*decoded)


def cooperative_claim(subscription: Subscription) -> Claim:
    """The claim that `cooperative-sticky` goes by: the owned partitions, with the generation of version 2.

    Without one, the generation is that of the user data.
    """
    generation = subscription.generation
    if generation < 0:
        generation = decode_cooperative_user_data(subscription.user_data)
    return Claim(subscription.owned, generation)


def resolve_claims(claims: Sequence[Claim], index: PartitionIndex) -> list[int]:
    """The valid owner of each partition, as a position in `claims`; NO_OWNER without one, CONTESTED with several.

    The claim of the highest generation counts (STICKY-07, KAFKA-14639); a claim on something that does not exist
    does not (STICKY-12, -13).
    """
    owners = [NO_OWNER] * len(index.names)
    newest = [NO_GENERATION - 1] * len(owners)
    for position, claim in enumerate(claims):
        generation = max(claim.generation, NO_GENERATION)
        for code in index.codes_of(claim.partitions):
            if generation > newest[code]:
                owners[code], newest[code] = position, generation
            elif generation == newest[code] and owners[code] != position:
                owners[code] = CONTESTED
    return owners


def older_owners(
    claims: Iterable[tuple[int, Claim]], index: PartitionIndex, subscribes: Callable[[int, str], bool]
) -> dict[int, int]:
    """For partitions claimed in a generation before the newest of all: the member with the latest of those claims.

    `claims` come with the positions of their members; of several in one generation the first counts. A member that
    does not subscribe to the topic any longer is left out (STICKY-14).
    """
    claims = tuple(claims)
    newest = max((claim.generation for _, claim in claims), default=NO_GENERATION)
    found: dict[int, tuple[int, int]] = {}
    for position, claim in claims:
        if claim.generation < newest:
            for code in index.codes_of(claim.partitions):
                is_latest = code not in found or claim.generation > found[code][0]
                if is_latest and subscribes(position, index.names[code][0]):
                    found[code] = claim.generation, position
    return {code: position for code, (_, position) in found.items()}
