"""Targets: clusters, the bundled coordinator, and the types for writing a custom target."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.target import Channel, Description, Exchange, Target, TraceBuilder
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order

__all__ = [
    "AnyTarget",
    "Channel",
    "Description",
    "Event",
    "Exchange",
    "Header",
    "KafkaTarget",
    "Kind",
    "Order",
    "Settings",
    "Target",
    "TraceBuilder",
    "bundled_target",
]


@dataclass(frozen=True, slots=True)
class KafkaTarget:
    """A cluster that speaks the Kafka protocol, with the profile that says what cannot be asked of it.

    `address` is "host:port", "kafka://host:port" or "kafka+ssl://host:port", with commas between several. `profile` is
    the path of a TOML file, see `fencepost.conformance.profile`; without one the target cannot be restarted and has
    no declared deviations.
    """

    address: str
    profile: str | os.PathLike[str] | None = None

    @property
    def url(self) -> str:
        """The address as the command line takes it."""
        return self.address if "://" in self.address else f"kafka://{self.address}"

    @property
    def profile_path(self) -> Path | None:
        """Where the profile is, None without one."""
        return Path(self.profile) if self.profile is not None else None


AnyTarget: TypeAlias = str | KafkaTarget | Target | Callable[[], Target]
"""What `run` and its like take:

- "bundled", the coordinator that comes with the kit, or "kafka://host:port";
- a `KafkaTarget`, which has a profile too;
- a `Target` of your own, in this process and on virtual time: its clock is that of the running event loop. It is opened
  and closed for every scenario, each time on an event loop of its own;
- a function without arguments that makes such a target: then every scenario has a fresh one.
"""


def bundled_target(**settings: int) -> Target:
    """The bundled coordinator as a target in this process, to be tested, wrapped or compared with.

    `settings` replace fields of `Settings` (times in milliseconds); the others are those of `fencepost test bundled`.
    Raises `TypeError` for a name that is no setting.
    """
    return InProcessTarget(replace(BUNDLED_SETTINGS, **settings))


def target_factory(target: Target | Callable[[], Target]) -> Callable[[Settings], Target]:
    """A function that gives the target for every scenario, with its own settings whatever it is asked for."""
    if callable(target):
        return lambda settings: target()
    return lambda settings: target
