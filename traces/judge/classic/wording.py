"""Words of the classic protocol: the response that the model allows, and the guard that was false."""

from fencepost.model.catalogue.specification import Rule
from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.member_table import is_member
from fencepost.model.classic.core.state import (
    Holder,
    JoinResponse,
    LeaveResponse,
    NoResponse,
    Phase,
    Slot,
    SyncResponse,
)
from fencepost.model.classic.messages.requests import Response
from fencepost.model.errors import Error
from fencepost.model.groups.messages import (
    DescribeGroupResponse,
    ListGroupsResponse,
    OffsetFetchResponse,
    PartitionErrors,
)
from fencepost.traces.events import Body
from fencepost.traces.judge.diagnosis.wording import errors_in, format_value


def format_expected(response: Response | None) -> str:
    """A response of the model in words."""
    match response:
        case None:
            return "no answer yet"
        case NoResponse():
            return "no answer, or an error"
        case JoinResponse(error=Error.NONE):
            members = [view.id for view in response.members if view.id is not None]
            return (
                f"NONE, generation={response.generation}, protocol={response.protocol!r}, leader={response.leader!r}, "
                f"member_id={response.member!r}, members={members}, skip_assignment={response.skip_assignment}"
            )
        case SyncResponse(error=Error.NONE):
            return f"NONE, assignment={format_value(response.assignment or b'')}, protocol={response.protocol!r}"
        case LeaveResponse():
            return f"{response.error.name}, entries={[each.name for each in response.entries]}"
        case PartitionErrors():
            rows = {f"{topic}/{number}": error.name for (topic, number), error in response.errors.items()}
            return f"{response.error.name} {rows}"
        case OffsetFetchResponse():
            offsets = {
                f"{topic}/{number}": "unstable" if offset is None else offset.offset
                for (topic, number), offset in response.offsets.items()
            }
            return f"{response.error.name} {offsets}"
        case DescribeGroupResponse():
            return f"{response.error.name}, state={response.state}, {len(response.members)} members"
        case ListGroupsResponse():
            return f"listed, state={response.state}" if response.listed else "not listed"
        case _:
            return response.error.name


def other_guards(api: str, body: Body, applied: Rule | None) -> str:
    """The guards of all rules but the one that applied which give the errors seen."""
    codes = errors_in(body)
    wanted = [row for row in RULES.values() if row.api == api and row.error is not None and row.error in codes]
    clauses = [row.guard for row in wanted if applied is None or row.name != applied.name]
    return " or ".join(clauses) or "no rule gives such an answer"


def format_state(world: GroupState) -> str:
    """The values that guards look at, in words."""
    group = world.group
    if group is None:
        return "the group does not exist"
    members = [format_member(slot) for slot in group.slots if is_member(slot)]
    pending = [repr(slot.id) for slot in group.slots if slot.holder is Holder.PENDING]
    facts = [f"{Phase(group.phase).name.capitalize()}, generation {group.generation}"]
    facts.append(f"members {', '.join(members)}" if members else "no members")
    if group.leader is not None:
        facts.append(f"leader {group.leader!r}")
    if pending:
        facts.append(f"pending ids {', '.join(pending)}")
    return ", ".join(facts)


def format_member(slot: Slot) -> str:
    """A member by its id, and by its instance id if it is static."""
    return f"{slot.id!r} (instance {slot.instance!r})" if slot.instance is not None else repr(slot.id)
