"""Comparison of a mutant with the shipped coordinator on the same requests.

A mutant whose traces are all the same is not told apart. It may be wrong all the same, where nobody looked.

Traces are compared whole: each response and its time, with member ids numbered in the order in which they were handed
out, because ids are opaque. The requests are those of all tours (every state of one or two members under every input),
all scenarios, some random schedules, and scenarios made for the comparison, where those seldom go: three to six
members, open transactions with something in between, retention in parts, commits of every kind. The latter check no
requirement; only their traces are compared. Each ends in a look at all that the group holds.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cache, partial
from itertools import islice

from fencepost.conformance.classic.scenarios.fetches import Producer
from fencepost.conformance.classic.zoo.bugs.environments import PLAIN
from fencepost.conformance.classic.zoo.coordinator_stand import (
    BUNDLED_SCHEDULES,
    CoordinatorFault,
    play_scenario_in,
    scenarios_for,
)
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.play import schedule_source
from fencepost.conformance.run.requests import RANGE, Member
from fencepost.conformance.subject import Scenario
from fencepost.conformance.zoo.measuring import CpuLimitExceeded, Line, cpu_limit, lines_changed_by, trace_lines
from fencepost.conformance.zoo.strategies import SCENARIOS, TOURS
from fencepost.traces.events import Event, Kind

SCHEDULE_COUNT = 200
"""The number of random schedules that are compared."""
MAX_PLAY_SECONDS = 30.0
"""The seconds of one core after which a coordinator counts as hanging."""


def find_difference(fault: CoordinatorFault) -> str:
    """The scenario in which the trace differs from the shipped coordinator's, and the requirements violated there; ""
    if there is none."""
    changed = lines_changed_by(fault.mutant) if fault.mutant is not None else None
    for play in compared_scenarios():
        expected, lines = observe_reference(play)
        if changed is not None and changed.isdisjoint(lines):
            continue
        try:
            with fault.activate(), cpu_limit(MAX_PLAY_SECONDS):
                same = observe(play) == expected
                violated = "" if same else violated_in(play)
        except CpuLimitExceeded:
            return play.name
        if not same:
            return play.name + violated
    return ""


def violated_in(play: Scenario) -> str:
    """The requirements that a run of a scenario violates, in words; "" if it violates none."""
    violated = play_scenario_in(PLAIN, play).verdict.violated
    return f", which violates {', '.join(sorted(violated))}" if violated else ""


def compared_scenarios() -> Iterator[Scenario]:
    """The scenarios, tours and random schedules whose traces are compared."""
    yield from made_scenarios()
    yield from scenarios_for(SCENARIOS)
    yield from scenarios_for(TOURS)
    yield from random_schedules()


@cache
def made_scenarios() -> tuple[Scenario, ...]:
    """The scenarios made for the comparison."""
    return tuple(comparison_scenarios())


@cache
def random_schedules() -> tuple[Scenario, ...]:
    """Random schedules of seed 0, as scenarios."""
    source = schedule_source(BUNDLED_SCHEDULES, 0)
    drawn = islice((each for chunk in range(SCHEDULE_COUNT) for each in source(chunk)), SCHEDULE_COUNT)
    return tuple(BUNDLED_SCHEDULES.scenario_of(each) for each in drawn)


def observe(play: Scenario) -> str:
    """The trace of a scenario in text, with normalized member ids, on the coordinator that is active in this
    process."""
    return normalize_ids(play_scenario_in(PLAIN, play).events)


def normalize_ids(events: Sequence[Event]) -> str:
    """Events in text, with member ids replaced by their numbers, also where a member made them part of other values."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(member_ids_in(events))) if name}
    text = repr(events)
    for name in sorted(numbers, key=len, reverse=True):
        text = text.replace(name, f"member {numbers[name]}")
    return text


def member_ids_in(events: Sequence[Event]) -> Iterator[str]:
    """The member ids in responses, in order."""
    for event in events:
        if event.kind is Kind.RESPONSE and event.api == "JoinGroup":
            yield event.body["member_id"]
        elif event.kind is Kind.RESPONSE and event.api == "DescribeGroups":
            yield from (member["member_id"] for group in event.body["groups"] for member in group["members"])


@cache
def observe_reference(play: Scenario) -> tuple[str, frozenset[Line]]:
    """The trace of a scenario on the shipped coordinator, as `observe` gives it, and the lines that it runs."""
    with trace_lines() as lines:
        text = observe(play)
    return text, frozenset(lines)


# -- groups of three to six members, and the initial delay -------------------------------------------------------------


Change = Callable[..., Awaitable[None]]
GROUP_SIZES = (3, 4, 5, 6)


async def look(group: ScenarioContext, *members: Member) -> None:
    """Look at all that the group holds; heartbeats show who is a member."""
    for call in (group.describe_groups(), group.fetch(None), group.fetch([0, 1, 2, 3], stable=True)):
        await call
    await group.send("ListGroups", {"states_filter": [], "types_filter": []})
    for member in members:
        await group.heartbeat(member)


async def leave_one(group: ScenarioContext, *members: Member) -> None:
    """The last member leaves, and the others come back."""
    await group.leave(members[-1])
    await rejoin(group, *members[:-1])


async def rejoin(group: ScenarioContext, *members: Member) -> None:
    """All members rejoin, and sync as far as they can."""
    calls = [group.join(member) for member in members]
    for call in calls:
        await call
    leader = next((member for member in members if member.is_leader), members[0])
    rest = [member for member in members if member is not leader]
    for call in [*(group.sync(member) for member in rest), group.sync_leader(leader, *rest)]:
        await call


async def lose_two(group: ScenarioContext, *members: Member) -> None:
    """Two members are silent until the join phase ends without them."""
    await rejoin(group, *members[:-2])
    await group.sleep_past(members[0].rebalance_timeout)


async def sync_partly(group: ScenarioContext, *members: Member) -> None:
    """In the next generation the leader and one follower sync, the others do not in time."""
    calls = [group.join(member) for member in members]
    for call in calls:
        await call
    leader = next((member for member in members if member.is_leader), members[0])
    rest = [member for member in members if member is not leader]
    await group.sync_leader(leader, *rest)
    await group.sync(rest[0])
    await group.sleep_past(leader.rebalance_timeout)


async def restart_twice(group: ScenarioContext, *members: Member) -> None:
    """The coordinator restarts, all rejoin, and it restarts again."""
    await group.restart()
    await look(group, *members)
    await rejoin(group, *members)
    await group.restart()


async def crowd(group: ScenarioContext, *members: Member) -> None:
    """Newcomers come until the group is full, one of them in vain."""
    for label in "UVWXYZ":
        group.join(group.member(label))
        await group.sleep(group.short_pause)
    await rejoin(group, *members)


async def replace_statics(group: ScenarioContext, *members: Member) -> None:
    """Every static member is replaced, the leader last, and the old ones look in."""
    for member in reversed(members):
        new = group.replacement_of(member)
        group.join(new)
        await group.sleep(group.short_pause)
        await group.sync(new)
    await group.sleep_past(members[0].rebalance_timeout)


async def expire_in_turn(group: ScenarioContext, *members: Member) -> None:
    """The members have sessions of different lengths, and nobody heartbeats."""
    for _ in members:
        await group.sleep(group.session_timeout // 2)
        await look(group)


CHANGES_OF_MEMBERS: tuple[Change, ...] = (
    leave_one,
    lose_two,
    sync_partly,
    restart_twice,
    crowd,
    replace_statics,
    expire_in_turn,
)


async def change_members(size: int, change: Change, group: ScenarioContext) -> None:
    """Form a group of this size, let something happen to it, and look."""
    members = [group.member(label) for label in "ABCDEF"[:size]]
    for number, member in enumerate(members):
        if change is replace_statics or number % 2:
            member.instance = f"{member.label}-{group.group_id}"
        member.rebalance_timeout = 2_000 + 500 * number
        if change is expire_in_turn:
            member.session_timeout = group.session_timeout + 700 * number
    formed = await group.form_stable_group(*members)
    await group.commit(formed[0], {0: 7, 1: 8})
    await change(group, *formed)
    await look(group, *formed)
    await group.sleep_past(members[-1].rebalance_timeout)
    await look(group, *formed)


async def extend_initial_delay(steps: int, group: ScenarioContext) -> None:
    """`steps` members come one after the other during the initial delay, with a short rebalance timeout."""
    delay = group.initial_delay
    members = [group.member(label) for label in "ABCDEF"[:steps]]
    for member in members:
        member.rebalance_timeout = delay * 5 // 2
    calls = []
    for member in members:
        calls.append(await group.join_new(member))
        await group.sleep(delay * 3 // 4)
    await group.sleep(4 * delay)
    for call in calls:
        await call
    await look(group, *members)


Act = Callable[[ScenarioContext], Awaitable[None]]
OTHER_TOPIC = "subscribed-elsewhere"
"""A topic that members subscribe to, so that offsets of the kit's topic may expire."""
CONSUMER, OTHER_TYPE = "consumer", "connect"

# --- open transactions -----------------------------------------------------------------------------------------------


async def commit_plainly(group: ScenarioContext) -> None:
    """A commit without a transaction."""
    await group.commit(None, {0: 9})


async def delete_offset(group: ScenarioContext) -> None:
    """An OffsetDelete of the partition."""
    await group.delete_offsets([0])


async def delete_group(group: ScenarioContext) -> None:
    """A DeleteGroups of the group."""
    await group.delete_groups()


async def pass_by(group: ScenarioContext) -> None:
    """Some clean-up passes, longer than the retention."""
    for _ in range(5):
        await group.sleep(group.settings.retention_check_interval)
        await look(group)


async def restart(group: ScenarioContext) -> None:
    """A restart of the coordinator."""
    await group.restart()


async def form_group(group: ScenarioContext) -> None:
    """A group of two members forms, commits, and empties again."""
    a, b = await group.form_stable_group(*(group.member(label) for label in "AB"))
    await group.commit(a, {0: 9, 1: 9})
    await group.delete_offsets([0])
    await group.leave(b)
    await group.leave(a)


async def commit_in_another_transaction(group: ScenarioContext) -> None:
    """Another producer commits the partition, and its transaction ends first."""
    other = make_producer(group, "other")
    await other.begin()
    await other.commit(0, 77)
    await look(group)
    await other.end(committed=True)


async def commit_again(group: ScenarioContext) -> None:
    """A plain commit before and after a restart."""
    await commit_plainly(group)
    await group.restart()
    await commit_plainly(group)


BETWEEN: tuple[Act, ...] = (
    commit_plainly,
    delete_offset,
    delete_group,
    pass_by,
    restart,
    form_group,
    commit_in_another_transaction,
    commit_again,
)


def make_producer(group: ScenarioContext, suffix: str) -> Producer:
    """A producer with a transactional id of its own."""
    return Producer(group, f"{group.group_id}-{suffix}")


async def act_in_transaction(between: Act, committed: bool, group: ScenarioContext) -> None:
    """Begin a transaction, let something happen, end the transaction, and look at every step."""
    await group.commit(None, {0: 5, 1: 6})
    producer = make_producer(group, "first")
    await producer.begin()
    await producer.commit(0, 70)
    await producer.commit(2, 71)
    await look(group)
    await between(group)
    await look(group)
    await producer.end(committed=committed)
    await look(group)
    await pass_by(group)


async def fence_producers(group: ScenarioContext) -> None:
    """Requests of epochs and producers that are not current."""
    older, newer, stranger = Producer(group), Producer(group), make_producer(group, "stranger")
    await older.begin()
    await older.commit(0, 70)
    await newer.begin()
    await older.commit(0, 71)
    await newer.commit(0, 72)
    stranger.id, stranger.epoch = newer.id, newer.epoch
    for producer in (older, stranger):
        for api, body in (("EndTxn", {"committed": True}), ("AddOffsetsToTxn", {"group_id": group.group_id})):
            version = group.highest_version(api, at_most=4)
            await group.send(api, {**producer.producer_fields(), **body}, version=version)
        await look(group)
    rows = group.partitions_by_topic({3: {"committed_offset": 1, "committed_metadata": ""}}, {})
    await newer.send_commit(rows, group_id="")
    await group.send("InitProducerId", {"transactional_id": None, "transaction_timeout_ms": 1_000})
    await group.restart()
    await newer.end(committed=True)
    await look(group)


# --- retention in parts ----------------------------------------------------------------------------------------------


async def hold_simply(group: ScenarioContext) -> tuple[Member, ...]:
    """No member at all."""
    return ()


async def hold_stably(group: ScenarioContext, kind: str = CONSUMER, topics: tuple[str, ...] = ()) -> tuple[Member, ...]:
    """A Stable group of two members of this protocol type, subscribed to these topics or to the kit's."""
    members = [
        group.member(label, (RANGE, group.metadata(label, *topics)), protocol_type=kind, session_timeout=30_000)
        for label in "AB"
    ]
    return await group.form_stable_group(*members)


async def hold_unreadably(group: ScenarioContext) -> tuple[Member, ...]:
    """A Stable group whose subscriptions cannot be read."""
    members = [group.member(label, (RANGE, b"\0"), session_timeout=30_000) for label in "AB"]
    return await group.form_stable_group(*members)


async def hold_in_join_phase(group: ScenarioContext) -> tuple[Member, ...]:
    """A group whose join phase lasts for longer than the retention."""
    members = await hold_stably(group, topics=(OTHER_TOPIC,))
    for member in members:
        member.rebalance_timeout = 10 * group.settings.offsets_retention
    calls = [group.join(member) for member in members]
    for call in calls:
        await call
    await group.sync_all(*sorted(members, key=lambda member: not member.is_leader))
    group.join_with_new_metadata(members[0])
    await group.sleep(group.short_pause)
    return members[1:]


async def hold_emptied(group: ScenarioContext) -> tuple[Member, ...]:
    """A group that its members have left."""
    members = await hold_stably(group)
    for member in members:
        await group.leave(member)
    return ()


HOLDERS: tuple[Callable[[ScenarioContext], Awaitable[tuple[Member, ...]]], ...] = (
    hold_simply,
    hold_stably,
    partial(hold_stably, topics=(OTHER_TOPIC,)),
    partial(hold_stably, kind=OTHER_TYPE),
    hold_unreadably,
    hold_in_join_phase,
    hold_emptied,
)


async def wait_out_retention(
    hold: Callable[[ScenarioContext], Awaitable[tuple[Member, ...]]], group: ScenarioContext
) -> None:
    """Commit partitions one after the other while the retention of the first runs out, and watch them go."""
    members = await hold(group)
    part = group.settings.retention_check_interval // 2
    for step in range(14):
        if step < 4:
            await group.commit(members[0] if members else None, {step: 10 + step})
        await group.sleep(part)
        for member in members:
            await group.heartbeat(member)
        await look(group)


async def expire_at_a_pass(offset: int, group: ScenarioContext) -> None:
    """Offsets whose retention ends so many milliseconds after a clean-up pass."""
    interval, retention = group.settings.retention_check_interval, group.settings.offsets_retention
    await group.sleep(interval - group.now_ms % interval + offset)
    await group.commit(None, {0: 7})
    await group.commit(None, {1: 8}, version=4, retention_time_ms=2 * interval)
    for _ in range(2 + (retention + interval) // interval):
        await group.sleep(interval - group.now_ms % interval)
        await look(group)
        await group.sleep(1 + abs(offset))
        await look(group)


# --- commits of every kind -------------------------------------------------------------------------------------------


async def stay_unknown(group: ScenarioContext) -> Member:
    """No group."""
    return group.member("A")


async def stay_simple(group: ScenarioContext) -> Member:
    """A simple group."""
    await group.commit(None, {3: 1})
    return group.member("A")


async def wait_for_first(group: ScenarioContext) -> Member:
    """The first join phase, generation 0."""
    a = group.member("A")
    await group.join_new(a)
    a.generation = 0
    return a


async def issue_id(group: ScenarioContext) -> Member:
    """A group without members that has issued an id."""
    a = group.member("A")
    await group.join(a)
    return a


async def complete_join(group: ScenarioContext) -> Member:
    """A generation that awaits its assignment."""
    (a,) = await group.form_generation(group.member("A", instance="a"))
    return a


async def settle(group: ScenarioContext) -> Member:
    """A Stable group."""
    (a,) = await group.form_stable_group(group.member("A", instance="a"))
    return a


async def prepare(group: ScenarioContext) -> Member:
    """A join phase that waits for its leader."""
    a = await settle(group)
    await group.join_new(group.member("B"))
    return a


async def empty(group: ScenarioContext) -> Member:
    """A group that its member has left."""
    a = await settle(group)
    await group.leave(a)
    return a


STATES: tuple[Callable[[ScenarioContext], Awaitable[Member]], ...] = (
    stay_unknown,
    stay_simple,
    wait_for_first,
    issue_id,
    complete_join,
    settle,
    prepare,
    empty,
)


async def commit_in_every_way(arrive: Callable[[ScenarioContext], Awaitable[Member]], group: ScenarioContext) -> None:
    """Commits, plain and in a transaction, with every combination of generation, member id and instance id."""
    member = await arrive(group)
    producer = Producer(group)
    await producer.begin()
    topics = group.partitions_by_topic({2: {"committed_offset": 70, "committed_metadata": ""}}, {})
    for generation in dict.fromkeys((-1, 0, 1, 2, member.generation)):
        for member_id in dict.fromkeys(("", member.id, "nobody")):
            for instance in dict.fromkeys((None, member.instance, "unknown")):
                who = {"member_id": member_id, "group_instance_id": instance}
                for version in (9, 8):
                    await group.commit(
                        None, {1: generation}, version=version, generation_id_or_member_epoch=generation, **who
                    )
                await producer.send_commit(topics, generation_id=generation, **who)
    await look(group, member)


# -- all of them -------------------------------------------------------------------------------------------------------


def comparison_scenarios() -> Iterator[Scenario]:
    """All scenarios of this module."""
    for size in GROUP_SIZES:
        for number, change in enumerate(CHANGES_OF_MEMBERS):
            yield Scenario(f"compare-{size}-members-{number}", (), partial(change_members, size, change))
    for number, between in enumerate(BETWEEN):
        for committed in (True, False):
            yield Scenario(
                f"compare-transaction-{number}-{committed}", (), partial(act_in_transaction, between, committed)
            )
    for number, hold in enumerate(HOLDERS):
        yield Scenario(f"compare-retention-in-parts-{number}", (), partial(wait_out_retention, hold))
    for offset in (-1, 0, 1):
        yield Scenario(f"compare-expiry-at-a-pass-{offset}", (), partial(expire_at_a_pass, offset))
    for number, arrive in enumerate(STATES):
        yield Scenario(f"compare-commits-of-every-kind-{number}", (), partial(commit_in_every_way, arrive))
    for steps in range(1, 7):
        yield Scenario(f"compare-initial-delay-{steps}", (), partial(extend_initial_delay, steps))
    yield Scenario("compare-fenced-producers", (), fence_producers)
