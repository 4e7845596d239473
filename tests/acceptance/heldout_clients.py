"""Held-out faults of clients: 20 errors of members, assignors and fetchers. They measure checks and schedules.

Each contradicts one statement of member.md. The statements were drawn: the lines of its sections 1.2 to 4.5 (members),
5 (assignors) and 6 (fetchers) were shuffled with `random.Random("2026-11-24 " + side)`, and the first 12, 4 and 4 were
taken that say what a client does and that no bug of the zoo contradicts already; `PASSED_OVER` has the others up to
there, with the reason. Whoever wrote the faults had read the interactions of the schedules and three modules of
scenarios, and none of the checks in `traces/client_judge` and `model/assignors/checks.py`. All were written before any
was hunted. They stay held out: nobody tunes an interaction, a scenario or a check on one of them, and none of them
becomes a bug of the zoo. `python -m tests.acceptance faulty_clients` hunts them.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from fencepost.adapters.classic.client.bodies import Fetcher, ReturnedRecords
from fencepost.adapters.classic.client.client import ReferenceClient
from fencepost.conformance.classic.zoo.clients.reference import COOPERATIVE, client_family, instead_of, replace_function
from fencepost.conformance.zoo.fault import Patch, Shipped, Side, by_id
from fencepost.model.assignors import group as assignor_values
from fencepost.model.assignors import sticky
from fencepost.model.assignors.group import GroupMember, subscriber_positions
from fencepost.model.assignors.sticky_group import CONTESTED, StickyGroup, make_sticky_group
from fencepost.model.classic.core.state import JoinResponse
from fencepost.model.classic.member import commits, heartbeats, joining, leaving, lookup
from fencepost.model.classic.member.client import (
    CallbackKind,
    CallbackPlace,
    Client,
    ClientContext,
    Closing,
    Problem,
    assigned_partitions,
)
from fencepost.model.classic.member.step import ClientStep
from fencepost.model.errors import Error
from fencepost.model.frozen import evolve

members = client_family(Side.MEMBER)
FATAL_TO_A_POLL = frozenset(
    {
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_SESSION_TIMEOUT,
        Error.INVALID_GROUP_ID,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.GROUP_MAX_SIZE_REACHED,
    }
)
FIXED_PAUSE_MS = 2_000


@members.add("HELDOUT-01", "member.md 1.5: thrown; the next poll sends JoinGroup with the same member id", "MEMBER-18")
@instead_of(joining.refuse_exchange)
def a_fatal_join_costs_the_id(
    shipped: Shipped[ClientStep], client: Client, error: Error, rules: Any, context: ClientContext
) -> ClientStep:
    """An error of JoinGroup that the application is told of costs the member its id."""
    step = shipped(client, error, rules, context)
    if error not in FATAL_TO_A_POLL or rules is not joining.JOIN_RULES:
        return step
    return ClientStep(evolve(step.client, member=evolve(step.client.member, id=None)), step.outputs, step.rules)


@members.add("HELDOUT-02", "member.md 1.2: MEMBER_ID_REQUIRED: loop at once, no backoff", "MEMBER-05")
@instead_of(joining.handle_join_error)
def a_member_waits_with_its_new_id(
    shipped: Shipped[ClientStep], client: Client, error: Error, rule: str, context: ClientContext
) -> ClientStep:
    """After MEMBER_ID_REQUIRED the member waits for two seconds before it joins with its id."""
    step = shipped(client, error, rule, context)
    if error != Error.MEMBER_ID_REQUIRED:
        return step
    clocks = evolve(step.client.clocks, join_retry=context.now + FIXED_PAUSE_MS)
    return ClientStep(evolve(step.client, clocks=clocks), step.outputs, step.rules)


@members.add("HELDOUT-03", "member.md 1.4: close(): callback as for unsubscribe", "CALLBACK-11")
@instead_of(leaving.give_up_before_leaving)
def closing_calls_no_listener(shipped: Shipped[ClientStep], client: Client, context: ClientContext) -> ClientStep:
    """A client that closes leaves without a call of its listener."""
    if client.closing is Closing.CLOSING:
        return leaving.leave_after_callback(client, context)
    return shipped(client, context)


@members.add("HELDOUT-04", "member.md 1.2: anything else: throw; a later poll tries again", "MEMBER-18")
@instead_of(joining.refuse_exchange)
def an_error_that_is_raised_ends_the_joining(
    shipped: Shipped[ClientStep], client: Client, error: Error, rules: Any, context: ClientContext
) -> ClientStep:
    """After an error of JoinGroup or SyncGroup that the application is told of, later polls do not join again."""
    step = shipped(client, error, rules, context)
    if step.client.failure is None:
        return step
    return ClientStep(evolve(step.client, member=evolve(step.client.member, rejoins=False)), (), step.rules)


@members.add(
    "HELDOUT-05",
    "member.md 2.4: next poll: JoinGroup with owned = t-0, t-1, generation 2",
    "COOP-04",
    setting=COOPERATIVE,
)
def revoked_partitions_are_claimed_once_more(patch: Patch) -> None:
    """The JoinGroup after a rebalance that took partitions away still claims them."""
    install, subscription_of = commits.install_assignment, joining.subscription_of
    before: list[Any] = []

    def install_and_remember(client: Client, context: ClientContext) -> ClientStep:
        before[:] = assigned_partitions(client)
        return install(client, context)

    def claim_both(client: Client, strategy: Any, claims: Any) -> Any:
        subscription = subscription_of(client, strategy, claims)
        return evolve(subscription, owned=tuple(sorted({*subscription.owned, *before})))

    replace_function(patch, install, install_and_remember)
    replace_function(patch, subscription_of, claim_both)


@members.add("HELDOUT-06", "member.md 1.3: the assignor whose name equals the chosen protocol", "MEMBER-08")
@instead_of(joining.plan_assignment)
def the_leader_plans_by_its_first_assignor(
    shipped: Shipped[Any], client: Client, response: JoinResponse, group: Any, context: ClientContext
) -> Any:
    """A leader makes its plan by the first of its assignors, whichever was chosen."""
    first = client.settings.strategies[0].name
    return shipped(client, evolve(response, protocol=first), group, context)


@members.add("HELDOUT-07", "member.md 1.4: REBALANCE_IN_PROGRESS: state stays STABLE, heartbeats go on", "HBT-05")
@instead_of(heartbeats.work)
def heartbeats_end_with_the_news(shipped: Shipped[ClientStep], client: Client, context: ClientContext) -> ClientStep:
    """A member that was told of a rebalance sends no heartbeat until it has joined again."""
    if client.member.rejoins:
        later = context.now + client.settings.heartbeat_interval
        client = evolve(client, clocks=evolve(client.clocks, heartbeat=max(client.clocks.heartbeat, later)))
    return shipped(client, context)


@members.add("HELDOUT-08", "member.md 2.2: the callback before the assignment changes", "CALLBACK-06", "CALLBACK-07")
@instead_of(commits.call_listener)
def partitions_are_gone_before_the_callback(
    shipped: Shipped[ClientStep], client: Client, kind: Any, partitions: Any, place: Any, rule: str
) -> ClientStep:
    """Partitions are given up before the listener hears that they are revoked."""
    if kind is CallbackKind.REVOKED and place is CallbackPlace.PREPARE:
        kept = tuple(one for one in client.positions if one.partition not in partitions)
        client = evolve(client, positions=kept)
    return shipped(client, kind, partitions, place, rule)


@members.add("HELDOUT-09", "member.md 1.2: other retriable failure: wait retry.backoff.ms", "MEMBER-17")
def a_failed_join_is_repeated_at_once(patch: Patch) -> None:
    """A JoinGroup or SyncGroup that failed is followed by another without a pause."""
    replace_function(patch, lookup.back_off_join, lambda client, context: client)


@members.add(
    "HELDOUT-10",
    "member.md 2.3: revoked(owned - assigned); remember that a rejoin is needed",
    "COOP-03",
    setting=COOPERATIVE,
)
@instead_of(commits.on_completion_callback)
def no_rejoin_follows_a_revocation(
    shipped: Shipped[ClientStep], client: Client, kind: CallbackKind, raised: bool, context: ClientContext
) -> ClientStep:
    """A cooperative member that gave partitions up after SyncGroup does not join again."""
    if kind is CallbackKind.REVOKED:
        client = evolve(client, member=evolve(client.member, rejoins=False))
    return shipped(client, kind, raised, context)


@members.add("HELDOUT-11", "member.md 2.5: unsubscribe: callback, then LeaveGroup", "CALLBACK-11")
@instead_of(leaving.give_up_before_leaving)
def the_listener_is_called_after_the_leave(
    shipped: Shipped[ClientStep], client: Client, context: ClientContext
) -> ClientStep:
    """A client that unsubscribes leaves the group first, and calls its listener then."""
    if client.closing is not Closing.UNSUBSCRIBING:
        return shipped(client, context)
    told = shipped(client, context)
    left = heartbeats.leave_group(told.client, leaving.UNSUBSCRIBED_REASON, "client.unsubscribe.leave")
    return ClientStep(left.client, (*left.outputs, *told.outputs), (*left.rules, *told.rules))


@members.add(
    "HELDOUT-12", "member.md 4.4: inside revoked of prepare: sent, old generation, normal", "CALLBACK-07", "CALLBACK-16"
)
@instead_of(commits.local_failure)
def commits_in_the_callback_are_refused(shipped: Shipped[Any], client: Client) -> Any:
    """A commit in the listener that hears of revoked partitions before JoinGroup is refused without a request."""
    callback = client.callback
    is_preparing = callback is not None and callback.place is CallbackPlace.PREPARE
    return Problem.REBALANCE_IN_PROGRESS if is_preparing else shipped(client)


assignors = client_family(Side.ASSIGNOR)


@assignors.add("HELDOUT-13", "member.md 5.4: topics by number of potential consumers ascending", "STICKY-02")
def topics_are_given_by_name(patch: Patch) -> None:
    """Where subscriptions differ, partitions are given in the order of their topics' names."""

    positions = subscriber_positions

    class Uncounted(tuple[int, ...]):
        """Subscribers whose number counts for nothing."""

        def __len__(self) -> int:
            return 0

    def hide_numbers(members: Sequence[GroupMember]) -> dict[str, tuple[int, ...]]:
        return {topic: Uncounted(subscribers) for topic, subscribers in positions(members).items()}

    patch.replace(sticky, "subscriber_positions", hide_numbers)


@assignors.add("HELDOUT-14", "member.md 5.6: used only if some member has a rack", "RANGE-08", "STICKY-19")
@instead_of(assignor_values.should_use_racks)
def racks_take_a_rack_of_each_member(
    shipped: Shipped[bool], member_racks: Collection[str | None], partition_racks: Sequence[frozenset[str]]
) -> bool:
    """Racks are used only if every member has one."""
    return None not in member_racks and bool(shipped(member_racks, partition_racks))


@assignors.add("HELDOUT-15", "member.md 5.4: repeat passes until a pass changes nothing", "STICKY-02")
@instead_of(sticky._Improvement.improve)
def the_plan_is_improved_once(shipped: Shipped[None], improvement: Any, codes: Sequence[int]) -> None:
    """Where subscriptions differ, the plan is improved in one pass over each list of partitions."""
    audiences, holders = improvement.audiences, improvement.holders
    for code in codes if audiences.is_uneven() else ():
        size, smallest = audiences.sizes[holders[code]], audiences.smallest(audiences.of[code])
        older = improvement.older.get(code, smallest)
        target = older if sticky.is_improvement(size, audiences.sizes[older]) else smallest
        if sticky.is_improvement(size, audiences.sizes[target]):
            improvement.move(code, target)


@assignors.add("HELDOUT-16", "member.md 5.4: or a multiply claimed one, is transferring", "COOP-16", "COOP-09")
@instead_of(make_sticky_group)
def contested_partitions_are_given_at_once(shipped: Shipped[StickyGroup], *group: object) -> StickyGroup:
    """A cooperative assignor does not withhold a partition that two members claim in one generation."""
    made: StickyGroup = shipped(*group)
    return evolve(made, owners=tuple(-1 if owner == CONTESTED else owner for owner in made.owners))


fetchers = client_family(Side.FETCHER)


@fetchers.add("HELDOUT-17", "member.md 6.6: until m records are gathered or the queue is empty", "POLL-04")
@instead_of(Fetcher.drain)
def a_poll_returns_one_partition(
    shipped: Shipped[Iterator[ReturnedRecords]], fetcher: Fetcher, client: Client
) -> Iterator[ReturnedRecords]:
    """A poll returns records of one partition, though there is room for those of the next."""
    for taken in shipped(fetcher, client):
        yield taken
        if taken.offsets:
            return


@fetchers.add("HELDOUT-18", "member.md 6.7: it waits for the unanswered fetch at its leader only", "PREFETCH-03")
def one_fetch_holds_all_leaders_up(patch: Patch) -> None:
    """While a Fetch to one leader has no response, none is sent to another."""
    is_fetching = ReferenceClient.is_fetching
    patch.replace(
        ReferenceClient, "is_fetching", lambda client, node: any(is_fetching(client, each) for each in [*client.links])
    )


@fetchers.add("HELDOUT-19", "member.md 6.6: no unanswered fetch at that broker", "PREFETCH-05")
def fetches_overlap(patch: Patch) -> None:
    """A Fetch is sent to a leader that owes the response to another, for the same partitions."""
    patch.replace(ReferenceClient, "is_fetching", lambda client, node: False)
    patch.replace(ReferenceClient, "partitions_in_flight", lambda client: set())


@fetchers.add("HELDOUT-20", "member.md 6.5: every poll starts at the first partition", "POLL-05")
@instead_of(Fetcher.drain)
def every_poll_starts_at_the_first_partition(
    shipped: Shipped[Iterator[ReturnedRecords]], fetcher: Fetcher, client: Client
) -> Iterator[ReturnedRecords]:
    """Every poll starts at the first partition of those that have records."""
    rows = sorted(fetcher.queue, key=lambda completed: completed.partition)
    fetcher.queue.clear()
    fetcher.queue.extend(rows)
    yield from shipped(fetcher, client)


PASSED_OVER = {
    "4.4 inside revoked/assigned of completion: new generation": "BUG-68",
    "4.1 leader epoch; after offset x the position is x + 1": "the reference client has no epochs; BUG-108",
    "1.2 records may be returned by those polls": "a permission",
    "1.5 JoinGroup, UNKNOWN_MEMBER_ID": "BUG-70, BUG-84",
    "1.3 the generation is captured when the request is sent": "BUG-67 is not put back, for the same reason",
    "3.6 ILLEGAL_GENERATION: the same id": "BUG-101",
    "4.4 state PREPARING or COMPLETING: no": "BUG-75, BUG-80, BUG-92",
    "4.3 no second commit before revoked": "latitude",
    "3.2 what the rebalance timeout is for the coordinator": "about the coordinator",
    "1.6 each assignor lists the protocols it supports": "BUG-87",
    "5.5 the generation that a member writes into its subscription": "about the member; BUG-71 is not put back",
    "5.4 set aside topics with fewer than two potential consumers": "changes no plan by itself",
    "5.5 a member whose SyncGroup failed": "about the member",
    "5.4 which of several members keeps the extra one": "latitude",
    "6.6 when fetches are sent": "latitude",
    "6.6 a comparison of offsets that broke on gaps": "the bundled log has no gaps, as for BUG-148",
    "6.7 drain rule that avoids starvation": "a property of rules",
    "6.4 obligation of T2": "a proof",
    "6.7 H2 as a rational comparison": "the reference client has no heuristic",
    "6.1 the limit is over all partitions": "BUG-152",
    "6.3 AT is fairer per record": "a property of rules",
    "6.5 AT with heuristic 2": "the reference client has no heuristic",
    "6.7 T, x[p] and N": "a definition",
    "6.2 where the next poll starts": "latitude",
    "6.4 a natural number falls strictly": "a proof",
    "6.5 the same schedules with AFTER": "a property of rules",
}
CLIENT_FAULTS = by_id([members, assignors, fetchers])
"""Every held-out fault of clients, by its number."""
