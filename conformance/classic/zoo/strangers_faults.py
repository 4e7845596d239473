"""The faults that strangers have: bugs of the zoo, mutants of the bundled coordinator, and responses rewritten."""

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from types import ModuleType
from typing import Any, TypeAlias

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.serve.coordination import Body, Request, Response
from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS
from fencepost.conformance.classic.zoo.bugs.deviations import DEVIATIONS
from fencepost.conformance.classic.zoo.bugs.environments import PLAIN, coordinator_mutants
from fencepost.conformance.classic.zoo.coordinator_stand import CoordinatorFault
from fencepost.conformance.classic.zoo.variants import VARIANTS
from fencepost.conformance.zoo.fault import INVENTED, Fault, Injection, Patch, Side, mutant_fault
from fencepost.conformance.zoo.mutants import Mutant, apply_mutant, source_of
from fencepost.model.errors import Error

# --- mutants, each put into the shipped function, so that it goes together with every other fault

_PACKAGE = "fencepost.adapters.classic"


def put_in_mutant(mutant: Mutant, patch: Patch) -> None:
    """Put one changed function into the shipped module. Raises any exception if it cannot be made."""
    module = sys.modules[mutant.module]
    owner_name, _, name = mutant.function.rpartition(".")
    node = find_function(apply_mutant(source_of(mutant.module), mutant), mutant.function)
    made: dict[str, Any] = {}
    code = compile(ast.Module([node], []), module.__file__ or mutant.module, "exec")
    exec(code, module.__dict__, made)
    if owner_name:
        patch.replace(getattr(module, owner_name), name, made[name])
        return
    shipped = getattr(module, name)
    for each in modules_that_have(name, shipped):
        patch.replace(each, name, made[name])


def find_function(tree: ast.Module, function: str) -> ast.stmt:
    """The definition of a function, or of a method of a class, in a module."""
    body: Sequence[ast.stmt] = tree.body
    found: ast.stmt = tree.body[0]
    for name in function.split("."):
        found = next(each for each in body if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name == name)
        body = found.body if isinstance(found, ast.ClassDef) else ()
    return found


def modules_that_have(name: str, shipped: object) -> Iterator[ModuleType]:
    """The modules of the coordinator that define or import a function."""
    for path, module in list(sys.modules.items()):
        if path.startswith(_PACKAGE) and getattr(module, name, None) is shipped:
            yield module


def is_in_one_function(mutant: Mutant) -> bool:
    """Whether the mutant changes a function of a module or a method that the function itself can be made of again."""
    source = source_of(mutant.module)
    return mutant.function.count(".") <= 1 and "super()" not in source and "<" not in mutant.function


# --- responses, rewritten on their way out

Change: TypeAlias = Callable[[Any], Any]


def change_field(value: Any, path: Sequence[str], change: Change) -> Any:
    """A body with the field at a path changed, in every row of the lists on the way, where it is."""
    if isinstance(value, list):
        return [change_field(each, path, change) for each in value]
    if not path:
        return change(value)
    if not isinstance(value, Mapping) or path[0] not in value:
        return value
    return {**value, path[0]: change_field(value[path[0]], path[1:], change)}


def change_errors(value: Any, old: int, new: int) -> Any:
    """A body with one error code in the place of another, in every row."""
    if isinstance(value, Mapping):
        return {
            name: new if name == "error_code" and each == old else change_errors(each, old, new)
            for name, each in value.items()
        }
    return [change_errors(each, old, new) for each in value] if isinstance(value, list) else value


def has_error(value: Any, error: int) -> bool:
    """Whether a body has this error code anywhere."""
    if isinstance(value, Mapping):
        return value.get("error_code") == error or any(has_error(each, error) for each in value.values())
    return isinstance(value, list) and any(has_error(each, error) for each in value)


Respond: TypeAlias = Callable[[CoordinatorState, Request, dict[str, Any]], None]
Rewrite: TypeAlias = Callable[[Respond, CoordinatorState, Request, dict[str, Any]], None]


def rewrite_responses(
    api: str, rewrite: Callable[[Respond, CoordinatorState, Request, dict[str, Any]], None]
) -> Injection:
    """Have a function send the responses to one API; it gets the shipped one to do so."""

    def put_in(patch: Patch) -> None:
        shipped = CoordinatorState.respond

        def respond(state: CoordinatorState, request: Request, body: dict[str, Any]) -> None:
            if request.api == api:
                rewrite(shipped, state, request, body)
            else:
                shipped(state, request, body)

        patch.replace(CoordinatorState, "respond", respond)

    return put_in


def send_changed(change: Callable[[dict[str, Any]], Any]) -> Rewrite:
    """Send every response with a change."""

    def rewrite(shipped: Respond, state: CoordinatorState, request: Request, body: dict[str, Any]) -> None:
        shipped(state, request, change(body))

    return rewrite


def drop_error(error: int, shipped: Respond, state: CoordinatorState, request: Request, body: dict[str, Any]) -> None:
    """Never send a response with this error."""
    if not has_error(body, error):
        shipped(state, request, body)


LATE_MS = 5_000


def send_late(error: int, shipped: Respond, state: CoordinatorState, request: Request, body: dict[str, Any]) -> None:
    """Send a response with this error late."""
    if has_error(body, error):
        send = partial(shipped, state, request, body)
        state.timers.arm(("late", request.handle), state.now + LATE_MS, send)
    else:
        shipped(state, request, body)


def go_down(api: str, is_deadly: Callable[[Body], bool]) -> Injection:
    """Have the coordinator end at some requests."""

    def put_in(patch: Patch) -> None:
        shipped = Coordinator.handle

        def handle(coordinator: Coordinator, request: Request, now: int) -> list[Response]:
            if request.api == api and is_deadly(request.body):
                raise RuntimeError(f"{api} is deadly")
            return shipped(coordinator, request, now)

        patch.replace(Coordinator, "handle", handle)

    return put_in


EMPTIED: Mapping[str, tuple[str, ...]] = {
    "JoinGroup": ("leader", "members", "protocol_name", "member_id", "members.metadata", "members.group_instance_id"),
    "SyncGroup": ("assignment", "protocol_type", "protocol_name"),
    "LeaveGroup": ("members",),
    "OffsetFetch": ("topics.partitions.metadata", "groups.topics.partitions.metadata"),
    "DescribeGroups": (
        "groups.protocol_type",
        "groups.protocol_data",
        "groups.members",
        "groups.members.client_id",
        "groups.members.client_host",
        "groups.members.member_metadata",
        "groups.members.member_assignment",
        "groups.members.group_instance_id",
        "groups.members.member_id",
    ),
    "ListGroups": ("groups.protocol_type", "groups.group_state", "groups.group_type", "groups"),
}
"""Fields that a rewrite empties."""
SHIFTED: Mapping[str, tuple[str, ...]] = {
    "JoinGroup": ("generation_id",),
    "OffsetFetch": (
        "topics.partitions.committed_offset",
        "groups.topics.partitions.committed_offset",
        "groups.topics.partitions.committed_leader_epoch",
    ),
    "FindCoordinator": ("node_id", "coordinators.node_id"),
    "InitProducerId": ("producer_epoch",),
}
"""Numbers that a rewrite shifts."""
NONE, UNKNOWN, ILLEGAL, REBALANCE = 0, 25, 22, 27
EXCHANGED: Mapping[str, tuple[tuple[int, int], ...]] = {
    "JoinGroup": (
        (UNKNOWN, ILLEGAL),
        (Error.MEMBER_ID_REQUIRED, UNKNOWN),
        (Error.INCONSISTENT_GROUP_PROTOCOL, UNKNOWN),
    ),
    "SyncGroup": ((REBALANCE, UNKNOWN), (ILLEGAL, UNKNOWN), (UNKNOWN, ILLEGAL), (REBALANCE, ILLEGAL)),
    "Heartbeat": ((REBALANCE, NONE), (ILLEGAL, UNKNOWN), (UNKNOWN, ILLEGAL), (Error.FENCED_INSTANCE_ID, UNKNOWN)),
    "LeaveGroup": ((UNKNOWN, NONE), (Error.FENCED_INSTANCE_ID, UNKNOWN)),
    "OffsetCommit": ((ILLEGAL, UNKNOWN), (REBALANCE, NONE), (UNKNOWN, NONE), (Error.OFFSET_METADATA_TOO_LARGE, NONE)),
    "TxnOffsetCommit": ((ILLEGAL, UNKNOWN), (Error.INVALID_PRODUCER_EPOCH, NONE)),
    "OffsetDelete": ((Error.GROUP_ID_NOT_FOUND, NONE), (Error.GROUP_SUBSCRIBED_TO_TOPIC, NONE)),
    "DeleteGroups": ((Error.GROUP_ID_NOT_FOUND, NONE), (Error.NON_EMPTY_GROUP, Error.GROUP_ID_NOT_FOUND)),
    "EndTxn": ((Error.INVALID_PRODUCER_EPOCH, NONE),),
    "OffsetFetch": ((Error.UNSTABLE_OFFSET_COMMIT, NONE),),
}
"""Errors that a rewrite exchanges."""
SILENT: Mapping[str, tuple[int, ...]] = {
    "JoinGroup": (UNKNOWN, Error.INCONSISTENT_GROUP_PROTOCOL),
    "SyncGroup": (REBALANCE, ILLEGAL),
    "Heartbeat": (UNKNOWN,),
    "LeaveGroup": (UNKNOWN,),
    "OffsetCommit": (REBALANCE, ILLEGAL),
    "DeleteGroups": (Error.NON_EMPTY_GROUP,),
}
"""Errors with which a response is never given, or late."""


def lacks_topics(body: Body) -> bool:
    """A request for all topics."""
    return "topics" in body and body["topics"] is None


DEADLY: Mapping[str, tuple[str, Callable[[Body], bool]]] = {
    "JoinGroup without protocols": ("JoinGroup", lambda body: not body["protocols"]),
    "SyncGroup without assignments": ("SyncGroup", lambda body: not body["assignments"] and body["generation_id"] > 1),
    "OffsetFetch of everything": ("OffsetFetch", lacks_topics),
    "LeaveGroup of nobody": ("LeaveGroup", lambda body: body.get("members") == []),
    "ListGroups with a filter": ("ListGroups", lambda body: bool(body.get("states_filter"))),
    "OffsetCommit of long metadata": (
        "OffsetCommit",
        lambda body: any(
            len(row["committed_metadata"] or "") > 4_000 for topic in body["topics"] for row in topic["partitions"]
        ),
    ),
}
"""Requests that a coordinator goes down at."""


def empty_value(value: Any) -> Any:
    """The empty value of the same type."""
    return None if value is None else type(value)()


def shift_number(value: Any) -> Any:
    """A number that is higher by a constant, unless it stands for none."""
    return value + 7 if value >= 0 else value


def rewrites() -> Iterator[tuple[str, Injection]]:
    """Every rewrite by its id."""
    for how, change, table in (("emptied", empty_value, EMPTIED), ("shifted", shift_number, SHIFTED)):
        for api, paths in table.items():
            for path in paths:
                send = send_changed(partial(change_field, path=path.split("."), change=change))
                yield f"{api} {path} {how}", rewrite_responses(api, send)
    for api, pairs in EXCHANGED.items():
        for old, new in pairs:
            send = send_changed(partial(change_errors, old=int(old), new=int(new)))
            yield f"{api} {Error(old).name} told as {Error(new).name}", rewrite_responses(api, send)
    for api, errors in SILENT.items():
        for error in errors:
            yield f"{api} {Error(error).name} never told", rewrite_responses(api, partial(drop_error, int(error)))
            yield f"{api} {Error(error).name} told late", rewrite_responses(api, partial(send_late, int(error)))
    for name, (api, is_deadly) in DEADLY.items():
        yield f"down at {name}", go_down(api, is_deadly)


def rewrite_fault(id: str, put_in: Injection) -> CoordinatorFault:
    """A rewrite as a fault."""
    return Fault(id, Side.COORDINATOR, (), INVENTED, put_in, PLAIN, id)


def by_their_ids(faults: Iterable[CoordinatorFault]) -> Mapping[str, CoordinatorFault]:
    """Some faults by their ids."""
    return {fault.id: fault for fault in faults}


@cache
def fault_pools() -> Mapping[str, Mapping[str, CoordinatorFault]]:
    """The faults of each origin by their ids."""
    mutants = filter(is_in_one_function, coordinator_mutants())
    return {
        "bugs": {**COORDINATOR_BUGS, **DEVIATIONS},
        "variants": {id: fault for id, fault in VARIANTS.items() if fault.breaks},
        "mutants": by_their_ids(mutant_fault(each, Side.COORDINATOR, PLAIN, put_in_mutant) for each in mutants),
        "rewrites": by_their_ids(rewrite_fault(id, put_in) for id, put_in in rewrites()),
    }
