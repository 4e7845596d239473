"""Events of a group that no response shows: a restart, a clean-up of offsets."""

from dataclasses import dataclass

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.groups.messages import Partition
from fencepost.traces.judge.search.configuration import Configuration
from fencepost.traces.judge.search.time_interval import Instant, cap_at, high


@fast_frozen
@dataclass(frozen=True, slots=True)
class Unseen:
    """The part of a configuration that the model does not have."""

    loading: bool = False
    """The coordinator was restarted and has not yet shown that it is ready."""
    is_moved: bool = False
    """Since a move began, another node has taken the group over."""
    last_cleanup: int | None = None
    """The earliest that the last clean-up pass can have been; the next comes a period later."""
    maybe_expired: frozenset[Partition] = frozenset()
    """Offsets that a clean-up pass may have removed."""


NOTHING_UNSEEN = Unseen()


def unseen_of(configuration: Configuration) -> Unseen:
    """What may have happened unseen in this configuration."""
    unseen = configuration.unseen
    return unseen if isinstance(unseen, Unseen) else NOTHING_UNSEEN


def finish_loading(configuration: Configuration, now: Instant) -> Configuration:
    """The configuration at the first response after a restart: by now the group is loaded and sessions have begun."""
    unseen = unseen_of(configuration)
    if not unseen.loading:
        return configuration
    ready = evolve(configuration, unseen=evolve(unseen, loading=False))
    group = configuration.world.group
    if group is None:
        return ready
    slots = tuple(
        evolve(slot, deadline=cap_at(slot.deadline, high(now) + slot.session_timeout)) for slot in group.slots
    )
    return evolve(ready, world=evolve(configuration.world, group=evolve(group, slots=slots)))
