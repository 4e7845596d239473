"""The state of a system of poll loops, and the form in which equal situations are equal states."""

from dataclasses import dataclass
from enum import Enum

from fencepost.model.classic.coordinator.state import GroupState
from fencepost.model.classic.core.state import Group, Holder, Slot
from fencepost.model.classic.member.client import Client, ClientResponse, new_client
from fencepost.model.classic.member.settings import RANGE, ClientDialect, ClientSettings, ResetPolicy
from fencepost.model.frozen import evolve
from fencepost.model.groups.messages import Partition
from fencepost.model.groups.protocol import Cluster
from fencepost.model.logic import Time
from fencepost.model.settings import Settings
from fencepost.model.sorts import HandleNumber

TICK_MS = 1_000
PARTITION: Partition = ("t", 0)
FAR: Time = 1 << 40
"""A moment that no run comes to: the network answers before any request takes too long."""
MAX_GENERATION = 2
"""All that matters of a generation is whether it is the current one, which is written as this one at most; those that
are over are all alike."""


class Application(Enum):
    """What the application does between polls."""

    BATCHES = "batches"
    """Processes every record that a poll returned, and then commits."""
    HEARTBEATS = "heartbeats"
    """Asks for a heartbeat before each record, leaves the batch where a rebalance is due, and commits: the method that
    KIP-41 rejected."""


@dataclass(frozen=True, slots=True)
class PollLoopSetting:
    """The sizes of a system. Times are in ticks."""

    consumers: int = 2
    max_poll_records: int = 4
    ticks_per_record: int = 1
    records: int = 4
    session_ticks: int = 3
    heartbeat_ticks: int = 1
    max_poll_ticks: int = 1_000
    heartbeats_in_poll: bool = True
    application: Application = Application.BATCHES

    def client_settings(self) -> ClientSettings:
        """The configuration of each client."""
        return ClientSettings(
            strategies=(RANGE,),
            session_timeout=self.session_ticks * TICK_MS,
            heartbeat_interval=self.heartbeat_ticks * TICK_MS,
            max_poll_interval=self.max_poll_ticks * TICK_MS,
            auto_commit=False,
            reset_policy=ResetPolicy.EARLIEST,
            dialect=ClientDialect(heartbeats_in_poll=self.heartbeats_in_poll),
        )


CLUSTER = Cluster(Settings(min_session_timeout=0, initial_rebalance_delay=0), {PARTITION[0]: 1})


@dataclass(frozen=True, slots=True)
class PollLoop:
    """A process: its client, the records that its last poll returned and it has not processed, from `record` on up to
    `end`, and the responses that its client has not read."""

    client: Client
    has_started: bool = False
    record: int = 0
    end: int = 0
    ticks_left: int = 0
    """Until the present record is processed."""
    is_idle: bool = False
    """The last poll returned nothing, and nothing has happened since."""
    must_commit: bool = False
    """The application has done with its batch."""
    inbox: tuple[tuple[int, ClientResponse], ...] = ()


@dataclass(frozen=True, slots=True)
class PollLoops:
    """The coordinator, the processes, and what verification remembers: by whom each record was processed (one bit
    each), whether one was processed again, and for how many ticks a JoinGroup has been parked."""

    coordinator: GroupState
    loops: tuple[PollLoop, ...]
    processors: tuple[int, ...]
    is_repeated: bool = False
    parked_ticks: int = 0


def initial_loops(setting: PollLoopSetting) -> PollLoops:
    """Nothing has started."""
    loop = PollLoop(new_client(setting.client_settings()))
    return PollLoops(GroupState(), (loop,) * setting.consumers, (0,) * setting.records)


def committed_offset(world: PollLoops) -> int:
    """The committed offset of the partition, 0 if there is none."""
    offset = world.coordinator.offsets.get(PARTITION)
    return 0 if offset is None else offset.offset


def is_processing(loop: PollLoop) -> bool:
    """Whether the application is at work on a record."""
    return loop.record < loop.end


def is_in_group(world: PollLoops, loop: PollLoop) -> bool:
    """Whether the coordinator has the client's member id as that of a member."""
    group = world.coordinator.group
    return group is not None and any(
        slot.holder is Holder.MEMBER and slot.id == loop.client.member.id for slot in group.slots
    )


def unused_id(world: PollLoops, index: int) -> str:
    """A member id for a process that nothing in this state knows."""
    group = world.coordinator.group
    used = {loop.client.member.id for loop in world.loops} | {slot.id for slot in (group.slots if group else ())}
    return next(name for number in range(99) if (name := f"{'ABCDEF'[index]}{number}") not in used)


def normalize(world: PollLoops, now: Time) -> PollLoops:
    """The state at moment 0 instead of `now`: times are relative, generations and handles as small as can be."""
    generation = 0 if world.coordinator.group is None else world.coordinator.group.generation
    shift = max(0, generation - MAX_GENERATION)
    group = None if world.coordinator.group is None else normalize_group(world.coordinator.group, now, shift)
    offsets = {where: evolve(offset, committed=0) for where, offset in world.coordinator.offsets.items()}
    coordinator = GroupState(group, world.coordinator.subscribed, offsets)
    loops = tuple(evolve(loop, client=normalize_client(loop, now, shift)) for loop in world.loops)
    return evolve(world, coordinator=coordinator, loops=loops)


def normalize_group(group: Group, now: Time, shift: int) -> Group:
    """The group without free slots and with relative times."""
    slots = tuple(normalize_slot(slot, now) for slot in group.slots if slot.holder is not Holder.NOBODY)
    return evolve(
        group,
        generation=older(group.generation, shift),
        slots=slots,
        join_deadline=max(0, group.join_deadline - now) if group.join_armed else 0,
        sync_deadline=max(0, group.sync_deadline - now) if group.sync_armed else 0,
    )


def normalize_slot(slot: Slot, now: Time) -> Slot:
    """The slot with a relative deadline."""
    return evolve(slot, deadline=max(0, slot.deadline - now) if slot.armed else 0)


def older(generation: int, shift: int) -> int:
    """The generation, less by the shift."""
    return generation if generation <= 0 else max(1, generation - shift)


def normalize_client(loop: PollLoop, now: Time, shift: int) -> Client:
    """The client with relative times, and with the smallest handles that it can go on with."""
    client = loop.client
    clocks = client.clocks
    relative = {name: max(0, getattr(clocks, name) - now) for name in ("heartbeat", "session", "poll", "join_retry")}
    member = evolve(
        client.member,
        generation=older(client.member.generation, shift),
        owned_in=older(client.member.owned_in, shift),
    )
    # A heartbeat is answered in the same move; only JoinGroup and SyncGroup stay unanswered, without a generation here.
    live = [client.member.waiting, *(one.handle for one in client.unanswered), *(handle for handle, _ in loop.inbox)]
    unanswered = tuple(evolve(one, deadline=FAR) for one in client.unanswered)
    return evolve(
        client,
        clocks=evolve(clocks, auto_commit=0, lookup_retry=0, offsets_retry=0, **relative),
        member=member,
        unanswered=unanswered,
        last_handle=HandleNumber(max(live)),
        remembered=(),
        reason="",
    )
