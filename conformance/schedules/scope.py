"""The limits that a target sets to random schedules."""

from dataclasses import dataclass

from fencepost.model.settings import Settings


@dataclass(frozen=True, slots=True)
class ScheduleScope:
    """What a target allows schedules to do; its timers may be `grace` milliseconds late.

    With `cuts`, connections are cut while requests are sent; the schedules of a seed depend on it.
    """

    settings: Settings
    restarts: bool = True
    transactions: bool = True
    virtual_time: bool = True
    grace: int = 0
    cuts: bool = False
