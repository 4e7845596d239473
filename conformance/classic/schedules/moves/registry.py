"""The registry of moves: their functions and options by kind."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fencepost.conformance.classic.schedules.moves.cast import Cast
from fencepost.conformance.run.schedule import Move

MoveFunction = Callable[[Cast, Move], Awaitable[None]]

SENDER_OPTIONS = ("as", "generation", "instance", "version", "sent")
"""Options of the requests that a member sends about itself.

`as` is the member id: "nobody" for none, "stranger" for an unknown one, "former" for the actor's previous one, a number
for another actor's; `generation` is "none" or the distance from the actor's own; `instance` is "none", "stranger" or
another actor's number; `sent` is the percentage of the request that is sent before its connection is cut.
"""


@dataclass(frozen=True, slots=True)
class MoveKind:
    """A kind of move: the function that makes it, and the options it takes. All options may be left out: then the
    actor acts as a well-behaved member."""

    make: MoveFunction
    options: tuple[str, ...]


KINDS: dict[str, MoveKind] = {}
"""The kinds of moves by name, in the order of their registration."""


def move_kind(name: str, *options: str) -> Callable[[MoveFunction], MoveFunction]:
    """Register a function as the kind of move with this name."""

    def register(make: MoveFunction) -> MoveFunction:
        KINDS[name] = MoveKind(make, options)
        return make

    return register
