"""A group that two processors see for the first time at once: every order of their steps and the handler's."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations

from fencepost.model.push.dialect import PushDialect

PROCESSORS = ("A", "B")
ORDERS = 90
"""Of two steps each of three programs."""


@dataclass(slots=True)
class NewGroup:
    """The group in the coordinator's memory: whether it is there, its bit, and the requests for it."""

    makes_once: bool
    exists: bool = False
    bit: bool = False
    queued: int = 0
    is_running: bool = False
    unknown_to: set[str] = field(default_factory=set)

    def look(self, processor: str) -> None:
        """A registration is accepted: is the group known?"""
        if not self.exists:
            self.unknown_to.add(processor)

    def add_member(self, processor: str) -> None:
        """Make the group if it was not known (with its bit, and a request), else ask for a rebalance."""
        is_new = not self.exists if self.makes_once else processor in self.unknown_to
        if is_new or not self.bit:
            self.exists = self.bit = True
            self.queued += 1

    def take(self) -> None:
        """The handler takes a request."""
        if self.queued and not self.is_running:
            self.queued, self.is_running = self.queued - 1, True

    def reset(self) -> None:
        """The rebalance is over."""
        if self.is_running:
            self.is_running = self.bit = False

    def is_right(self) -> bool:
        """Whether the bit is set exactly while one request is queued or running."""
        work = self.queued + self.is_running
        return work <= 1 and self.bit == bool(work)


def twice_made_groups(dialect: PushDialect) -> Iterator[str]:
    """The orders of steps after which the bit does not say what is under way."""
    for order in sorted(set(permutations((*PROCESSORS, "the handler") * 2))):
        group, told = NewGroup(dialect.compares_and_sets), []
        for place, name in enumerate(order):
            is_first = name not in order[:place]
            if name in PROCESSORS:
                (group.look if is_first else group.add_member)(name)
                told.append(f"{name} {'looks' if is_first else 'adds a member'}")
            else:
                (group.take if is_first else group.reset)()
                told.append(f"{name} {'takes a request' if is_first else 'is done'}")
            if not group.is_right():
                yield ", ".join(told)
                break
