"""The coordinator in a broker: election, startup, the queue of rebalance requests, sessions (draft, 3 and 8)."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.logic import Token
from fencepost.model.push.dialect import PushDialect
from fencepost.model.push.group import GroupStep, PushGroup, take_request


class Role(StrEnum):
    """What a broker takes itself for."""

    DOWN = "down"
    CANDIDATE = "candidate"
    ELECTED = "elected"


class Startup(StrEnum):
    """How far the startup procedure has come (draft, 3: 4, 5, 6)."""

    LISTENING = "accepts consumers"
    ARMED = "listens for the expiry of its session"
    READY = "has handler threads"


@fast_frozen
@dataclass(frozen=True, slots=True)
class PushCoordinator:
    """The coordinator instance of one broker. One queue with its thread: other queues share nothing with it.

    `is_armed` says whether the expiry of the present session will be told.
    """

    role: Role = Role.CANDIDATE
    has_session: bool = True
    is_armed: bool = False
    startup: Startup = Startup.READY
    groups: tuple[PushGroup | None, ...] = (None,)
    queue: tuple[int, ...] = ()
    """The groups that ask for a rebalance, by number."""
    is_thread_alive: bool = True

    def holds(self, group: int, consumer: Token, number: int) -> bool:
        """Whether the registration is a member of the group."""
        held = self.groups[group]
        return held is not None and held.has(consumer, number)


def win_election(coordinator: PushCoordinator, dialect: PushDialect) -> tuple[PushCoordinator, str]:
    """The coordinator once it has made the ephemeral node: startup goes in steps, or is over before the election."""
    startup = Startup.READY if dialect.prepares_before_election else Startup.LISTENING
    armed = dialect.prepares_before_election
    return evolve(coordinator, role=Role.ELECTED, startup=startup, is_armed=armed), "elector.elected"


def go_on_with_startup(coordinator: PushCoordinator) -> tuple[PushCoordinator, str] | None:
    """The next step of the startup as drafted: the listener, then the handler threads."""
    if coordinator.role is not Role.ELECTED or coordinator.startup is Startup.READY:
        return None
    if coordinator.startup is Startup.LISTENING:
        # A listener that is registered after the expiry hears nothing of it.
        armed = coordinator.has_session
        return evolve(coordinator, startup=Startup.ARMED, is_armed=armed), "startup.armed"
    return evolve(coordinator, startup=Startup.READY), "startup.ready"


def expire_session(coordinator: PushCoordinator, dialect: PushDialect) -> tuple[PushCoordinator, str]:
    """The session with ZooKeeper expires. As drafted the coordinator does not know, and goes on."""
    expired = evolve(coordinator, has_session=False)
    if not dialect.steps_down_in_time:
        return expired, "session.expired"
    # The channels are closed, and so nobody is a member any more.
    groups = tuple(None if group is None else evolve(group, members=()) for group in coordinator.groups)
    return discard(evolve(expired, role=Role.CANDIDATE, groups=groups, queue=()), dialect), "session.stepped-down"


def notice_new_session(coordinator: PushCoordinator, dialect: PushDialect) -> tuple[PushCoordinator, str] | None:
    """A new session has begun (draft, 8): clear the tables it names, listen again, be a candidate."""
    if coordinator.has_session or not coordinator.is_armed or coordinator.role is Role.DOWN:
        return None
    back = evolve(coordinator, role=Role.CANDIDATE, has_session=True, queue=(), is_armed=True)
    return discard(back, dialect), "session.noticed"


def discard(coordinator: PushCoordinator, dialect: PushDialect) -> PushCoordinator:
    """Repaired: nothing of the old session is left, no bit and no running rebalance either."""
    if not dialect.new_session_discards_all:
        return coordinator
    return evolve(coordinator, groups=tuple(None for _ in coordinator.groups), is_thread_alive=True)


def crash_broker(coordinator: PushCoordinator) -> PushCoordinator:
    """The process is gone, with its memory."""
    return PushCoordinator(role=Role.DOWN, has_session=False, groups=tuple(None for _ in coordinator.groups))


def is_busy(coordinator: PushCoordinator) -> bool:
    """Whether the handler thread has a rebalance under way."""
    return any(group is not None and group.run is not None for group in coordinator.groups)


def take_next(coordinator: PushCoordinator) -> tuple[PushCoordinator, str] | None:
    """The handler thread takes the next request of its queue, if it is alive and has nothing to do."""
    ready = coordinator.is_thread_alive and coordinator.startup is Startup.READY
    if not ready or not coordinator.queue or is_busy(coordinator) or coordinator.role is Role.DOWN:
        return None
    number, rest = coordinator.queue[0], coordinator.queue[1:]
    group = coordinator.groups[number]
    assert group is not None
    step = take_request(group)
    return apply_step(evolve(coordinator, queue=rest), number, step), step.rule


def apply_step(coordinator: PushCoordinator, number: int, step: GroupStep) -> PushCoordinator:
    """The coordinator after a step of one of its groups."""
    groups = (*coordinator.groups[:number], step.group, *coordinator.groups[number + 1 :])
    alive = coordinator.is_thread_alive and not step.ends_thread
    return evolve(
        coordinator, groups=groups, queue=coordinator.queue + (number,) * step.requests, is_thread_alive=alive
    )


def running_step(
    coordinator: PushCoordinator, handle: Callable[[PushGroup], GroupStep | None]
) -> tuple[int, GroupStep] | None:
    """The step of the group whose rebalance is under way, with its number; None if there is none to take."""
    if coordinator.startup is not Startup.READY:
        return None
    for number, group in enumerate(coordinator.groups):
        step = None if group is None or group.run is None else handle(group)
        if step is not None:
            return number, step
    return None


def queue_index(group: str, queues: int, dialect: PushDialect) -> int:
    """The queue of a group: its hash modulo their number. As drafted, the hash of a string in Java is signed, and so is
    the remainder (PUSH-H20)."""
    value = 0
    for unit in group:
        value = (31 * value + ord(unit)) & 0xFFFFFFFF
    if dialect.unsigned_hash:
        return (value & 0x7FFFFFFF) % queues
    signed = value - (1 << 32) if value >> 31 else value
    return signed % queues if signed >= 0 else -(-signed % queues)
