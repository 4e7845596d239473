"""Correct variants of the shipped coordinator, each with another choice where the protocol leaves one.

A variant is written as a fault is, and its `breaks` are the sentences that it does break, by the letter, without harm
to a client. No other requirement may fail on it. Strangers draw from them as their allowed differences.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Any

from fencepost.adapters.classic.administration import Cleanup
from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Member
from fencepost.adapters.classic.membership import Joining, Syncing
from fencepost.adapters.classic.messages import JoinGroup
from fencepost.adapters.classic.offsets import Offsets
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.classic.records import GroupTombstone
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.conformance.classic.zoo.bugs.environments import Environment, coordinator_family
from fencepost.conformance.zoo.fault import Fault, Patch, Shipped, instead_of
from fencepost.model.errors import Error
from fencepost.traces.events import Order

LATE_MS = 300
"""How late each response of a slow coordinator is."""
EVERY_SECOND_MS = 1_000
FIRST_GENERATION = 101
ID_LENGTH = 200

variants = coordinator_family()


@variants.add("cleans-up-every-second")
@instead_of(Cleanup._arm)
def cleans_up_every_second(shipped: Shipped[None], cleanup: Cleanup) -> None:
    """Clean-up runs every second, whatever interval is told."""
    settings = cleanup._runtime.settings
    cleanup._runtime.settings = replace(settings, retention_check_interval=EVERY_SECOND_MS)
    try:
        shipped(cleanup)
    finally:
        cleanup._runtime.settings = settings


@variants.add("drops-empty-group")
@instead_of(Rebalancer.store_empty_group)
def drops_empty_group(shipped: Shipped[None], rounds: Rebalancer, group: Group) -> None:
    """A group without members, offsets and transactions is removed at once, not by the next clean-up."""
    shipped(rounds, group)
    if not group.offsets and not group.uncommitted and not group.pending:
        rounds._runtime.write(GroupTombstone(group.group_id))
        del rounds._runtime.groups[group.group_id]


@variants.add("checks-session-before-group-id")
@instead_of(Joining.check_request)
def checks_session_before_group_id(shipped: Shipped[Error], joining: Joining, join: JoinGroup) -> Error:
    """A JoinGroup with a bad session timeout and no group id is refused for the session timeout."""
    allowed = joining.is_session_timeout_allowed(join.session_timeout)
    return shipped(joining, join) if allowed else Error.INVALID_SESSION_TIMEOUT


@variants.add("checks-group-id-before-protocol")
@instead_of(Syncing.check_request)
def checks_group_id_before_protocol(shipped: Shipped[Error], syncing: Syncing, request: Request) -> Error:
    """A SyncGroup without protocol and group id is refused for the group id."""
    return shipped(syncing, request) if request.body.get("group_id", "") else Error.INVALID_GROUP_ID


@variants.add("begins-with-generation-101", "power.md", "GEN-01", "GEN-13")
@instead_of(Group.begin_generation)
def begins_with_generation_101(shipped: Shipped[None], group: Group, now: int) -> None:
    """The first generation of a group is 101."""
    group.generation = group.generation or FIRST_GENERATION - 1
    shipped(group, now)


GENERATION_FIELDS = ("generation_id", "generation_id_or_member_epoch")


@variants.add("tells-lower-generations", "brokers.md", "GEN-01", "GEN-13")
def tells_lower_generations(patch: Patch) -> None:
    """Every generation on the wire is one lower than Apache Kafka's."""
    handle, collect = Coordinator.handle, Coordinator._collect

    def lower(response: Response) -> Response:
        told = response.body.get("generation_id", -1)
        return replace(response, body=response.body | {"generation_id": told - 1}) if told > 0 else response

    def handle_raised(coordinator: Coordinator, request: Request, now: int) -> list[Response]:
        given = {name: request.body[name] + 1 for name in GENERATION_FIELDS if request.body.get(name, -1) >= 0}
        return handle(coordinator, replace(request, body={**request.body, **given}), now)

    patch.replace(Coordinator, "handle", handle_raised)
    patch.replace(Coordinator, "_collect", lambda coordinator: [lower(each) for each in collect(coordinator)])


@variants.add("hands-out-long-ids")
@instead_of(Coordinator.__init__)
def hands_out_long_ids(
    shipped: Shipped[None],
    coordinator: Coordinator,
    settings: Any,
    log: Any,
    new_id: Callable[[str], str],
    *given: Any,
    **named: Any,
) -> None:
    """Member ids have 200 characters."""
    shipped(coordinator, settings, log, lambda prefix: new_id(prefix).ljust(ID_LENGTH, "-"), *given, **named)


@variants.add("answers-newest-first")
@instead_of(Coordinator._collect)
def answers_newest_first(shipped: Shipped[list[Response]], coordinator: Coordinator) -> list[Response]:
    """Of requests that are answered in the same moment the newest is answered first."""
    return shipped(coordinator)[::-1]


@variants.add("ends-superseded-requests", "KAFKA-20938, https://github.com/apache/kafka/pull/23174")
def ends_superseded_requests(patch: Patch) -> None:
    """A parked JoinGroup or SyncGroup that the member's next one supersedes is answered NOT_COORDINATOR."""
    update, await_assignment = Rebalancer.update_member, Syncing.await_assignment

    def update_and_end(rounds: Rebalancer, group: Group, member: Member, join: JoinGroup) -> None:
        rounds.refuse_parked_join(member, Error.NOT_COORDINATOR, member.member_id)
        update(rounds, group, member, join)

    def await_and_end(syncing: Syncing, group: Group, member: Member, request: Request) -> None:
        syncing._rounds.refuse_parked_sync(member, Error.NOT_COORDINATOR)
        await_assignment(syncing, group, member, request)

    patch.replace(Rebalancer, "update_member", update_and_end)
    patch.replace(Syncing, "await_assignment", await_and_end)


@variants.add("newest-member-leads")
@instead_of(Group.choose_leader)
def newest_member_leads(shipped: Shipped[bool], group: Group) -> bool:
    """A leader that did not rejoin is succeeded by the newest member."""
    if group.leader is None or not group.members[group.leader].has_rejoined:
        joined = [member.member_id for member in group.members.values() if member.has_rejoined]
        group.leader = joined[-1] if joined else group.leader
    return shipped(group)


@variants.add("lists-backwards")
def lists_backwards(patch: Patch) -> None:
    """The topics of OffsetFetch and the groups of ListGroups come in another order."""
    all_topics, respond = Offsets.all_topics, CoordinatorState.respond

    def respond_backwards(runtime: CoordinatorState, request: Request, body: dict[str, Any]) -> None:
        respond(runtime, request, {**body, "groups": body["groups"][::-1]} if request.api == "ListGroups" else body)

    patch.replace(Offsets, "all_topics", lambda offsets, group: all_topics(offsets, group)[::-1])
    patch.replace(CoordinatorState, "respond", respond_backwards)


@variants.add("answers-late", setting=Environment("late", lambda patch: None, LATE_MS, Order.INTERVALS))
def answers_late(patch: Patch) -> None:
    """Every response comes 300 ms late, in the order in which they were made."""
    respond, numbers = CoordinatorState.respond, count()

    def respond_late(runtime: CoordinatorState, request: Request, body: dict[str, Any]) -> None:
        runtime.timers.arm(("late", next(numbers)), runtime.now + LATE_MS, partial(respond, runtime, request, body))

    patch.replace(CoordinatorState, "respond", respond_late)


VARIANTS: Mapping[str, Fault[Environment]] = MappingProxyType({fault.id: fault for fault in variants.faults})
"""Every variant by its name."""
