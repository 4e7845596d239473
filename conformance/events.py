"""The events of a run, in the order in which they happen, as plain data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come: `done` of `total` schedules (or `unit`), after `seconds`.

    `failures` counts the requirements found violated so far; `current` names what is being tested now.
    """

    done: int
    total: int
    seconds: float
    failures: int = 0
    current: str = ""
    unit: str = "schedules"

    def seconds_left(self) -> float | None:
        """Seconds left if the rest goes on at the present pace; None while nothing is done."""
        if self.done == 0 or self.total < self.done:
            return None
        return self.seconds / self.done * (self.total - self.done)
