"""Where a group can be followed further after wrong responses."""

from collections.abc import Mapping

from fencepost.model.classic.core.state import HeartbeatResponse, JoinResponse, LeaveResponse
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import (
    DescribeGroupResponse,
    ListGroupsResponse,
    OffsetFetchResponse,
    PartitionErrors,
)
from fencepost.traces.events import Body
from fencepost.traces.judge.classic.unseen import unseen_of
from fencepost.traces.judge.diagnosis.diagnosis import Diagnosis, Recovery
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation, Mismatch

READ_ONLY_RESPONSES = (HeartbeatResponse, OffsetFetchResponse, DescribeGroupResponse, ListGroupsResponse)
"""Responses to requests that change nothing that matters."""
NO_EFFECT_RULES = frozenset({"sync.stable"})
"""Rules of other requests that change nothing."""
OFFSET_DETAIL_FIELDS = frozenset({"epoch", "metadata"})
"""What is stored beside an offset: wrong or not, the rest of the response means the same."""
JOIN_DETAIL_FIELDS = frozenset({"instances", "skip_assignment"})
"""What a JoinGroup response tells besides, for the client alone."""
SAME_GENERATION_RULES = frozenset(
    {"join.completing.same-protocols", "join.stable.same-protocols", "join.replace.stable"}
)
"""Rules whose response names the generation that the other members are in already."""


def is_generation_announced(configuration: Configuration, operations: Mapping[int, GroupOperation]) -> bool:
    """The response to another member names the right generation."""
    assert configuration.world.group is not None
    responses = (operations[each].operation.response or {} for each in configuration.matched if each in operations)
    return any(each.get("generation_id") == configuration.world.group.generation for each in responses)


def recover(diagnosis: Diagnosis, body: Body, operations: Mapping[int, GroupOperation]) -> Recovery | None:
    """Where to go on after wrong responses, if that is beyond doubt; else None. `operations` are requests by handle.

    Either nothing depends on the response, or the target goes by it from now on: it counts from a generation, it has
    let a member in without an id, or it shows what is stored beside an offset. After a commit or a leave it is in doubt
    what the group is if several states are possible, or a clean-up pass was assumed to explain another error.
    """
    after = diagnosis.after
    if after is None:
        return None
    clean = evolve(after, mismatches=())
    rest = [each for each in after.mismatches if not each.is_certain]
    if not rest:
        return Recovery(clean, after.mismatches)
    if all(each.fields == {"generation"} for each in rest) and clean.world.group is not None:
        if any(each.rule in SAME_GENERATION_RULES for each in rest) or is_generation_announced(clean, operations):
            return Recovery(clean)
        group = evolve(clean.world.group, generation=body.get("generation_id", -1))
        return Recovery(evolve(clean, world=evolve(clean.world, group=group)), after.mismatches)
    mismatch = rest[0]
    if len(after.mismatches) != 1 or "time" in mismatch.fields:
        return None
    if mismatch.fields <= OFFSET_DETAIL_FIELDS:
        return Recovery(clean, (mismatch,))
    if is_detail_for_the_client(mismatch) and not diagnosis.is_state_ambiguous:
        return Recovery(clean, (mismatch,))
    unmoved = isinstance(mismatch.expected, READ_ONLY_RESPONSES) or mismatch.rule in NO_EFFECT_RULES
    doubtful = isinstance(mismatch.expected, PartitionErrors | LeaveResponse) and (
        diagnosis.is_state_ambiguous or unseen_of(clean).last_cleanup is not None
    )
    refused = is_refused(mismatch.expected, body) and not doubtful
    return Recovery(clean) if unmoved or refused else None


def is_detail_for_the_client(mismatch: Mismatch) -> bool:
    """Whether a JoinGroup response is wrong only in what it tells the member, and the coordinator does not go by it.

    That is a list of members for one that does not lead and is not told that it does, or a detail of the list.
    """
    if not isinstance(mismatch.expected, JoinResponse) or mismatch.expected.error != Error.NONE:
        return False
    return mismatch.fields <= JOIN_DETAIL_FIELDS or (mismatch.fields == {"members"} and not mismatch.expected.members)


def is_refused(expected: object, body: Body) -> bool:
    """Whether the response allowed and the one seen refuse the request in all its parts: then nothing came of it."""
    whole = getattr(expected, "error", Error.NONE)
    allowed, rows = {whole}, list[Body]()
    if isinstance(expected, PartitionErrors) and whole == Error.NONE:
        allowed = set(expected.errors.values())
    elif isinstance(expected, LeaveResponse) and whole == Error.NONE:
        allowed = set(expected.entries)
    if isinstance(expected, PartitionErrors):
        rows = [row for topic in body.get("topics") or () for row in topic.get("partitions") or ()]
    elif isinstance(expected, LeaveResponse):
        rows = list(body.get("members") or ())
    seen = {body["error_code"]} if body.get("error_code") else {row.get("error_code") for row in rows}
    return bool(allowed and seen) and Error.NONE not in allowed and not seen & {None, 0}
