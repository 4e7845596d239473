"""Where a group can be followed further after wrong responses."""

from collections.abc import Mapping

from fencepost.model.classic.core.state import HeartbeatResponse
from fencepost.model.classic.messages.responses import DescribeGroupResponse, ListGroupsResponse, OffsetFetchResponse
from fencepost.model.frozen import evolve
from fencepost.traces.events import Body
from fencepost.traces.judge.diagnosis.diagnosis import Diagnosis, Recovery
from fencepost.traces.judge.search.configuration import Configuration, GroupOperation

READ_ONLY_RESPONSES = (HeartbeatResponse, OffsetFetchResponse, DescribeGroupResponse, ListGroupsResponse)
"""Responses to requests that change nothing that matters."""
NO_EFFECT_RULES = frozenset({"sync.stable"})
"""Rules of other requests that change nothing."""
OFFSET_DETAIL_FIELDS = frozenset({"epoch", "metadata"})
"""What is stored beside an offset: wrong or not, the rest of the response means the same."""
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
    let a member in without an id, or it shows what is stored beside an offset.
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
    refused = body.get("error_code") not in (None, 0) and getattr(mismatch.expected, "error", 0) != 0
    unmoved = isinstance(mismatch.expected, READ_ONLY_RESPONSES) or mismatch.rule in NO_EFFECT_RULES
    return Recovery(clean) if refused or unmoved else None
