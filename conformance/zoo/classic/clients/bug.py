"""Known bugs of clients: the source of each, the requirements it violates, and the function that puts it back."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from fencepost.conformance.zoo.mutation.patching import Patch
from fencepost.model.classic.member.settings import (
    COOPERATIVE_STICKY,
    RANGE,
    ROUND_ROBIN,
    STICKY,
    ClientSettings,
    ResetPolicy,
)
from fencepost.model.frozen import evolve

PATCHED = ("fencepost.model.classic.member", "fencepost.model.assignors", "fencepost.adapters.client.reference")
"""The packages in which a replaced function is replaced, wherever it is imported."""
Injection = Callable[[Patch], None]


class Side(StrEnum):
    """The part of a client that has a bug."""

    MEMBER = "member"
    ASSIGNOR = "assignor"
    FETCHER = "fetcher"


EAGER = ClientSettings(
    strategies=(RANGE, ROUND_ROBIN),
    session_timeout=6_000,
    heartbeat_interval=500,
    max_poll_interval=6_000,
    auto_commit_interval=1_000,
    reset_policy=ResetPolicy.EARLIEST,
)
"""An eager client whose timers are short."""
COOPERATIVE = evolve(EAGER, strategies=(COOPERATIVE_STICKY,))
STICKY_ONLY = evolve(EAGER, strategies=(STICKY,))
MIXED = evolve(EAGER, strategies=(COOPERATIVE_STICKY, RANGE))
NO_AUTO_COMMIT = evolve(EAGER, auto_commit=False)
"""One whose heartbeats are its only signs of life."""
LATEST = evolve(EAGER, reset_policy=ResetPolicy.LATEST)


@dataclass(frozen=True, slots=True)
class ClientBug:
    """A bug that a client shipped; the fields are those of a coordinator's `Bug`. It shows in a client with these
    `settings`."""

    number: str
    side: Side
    sentence: str
    source: str
    breaks: tuple[str, ...]
    inject: Injection
    settings: ClientSettings = EAGER

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Put the bug back in this process for the duration of the context."""
        with Patch() as patch:
            self.inject(patch)
            yield


class ClientBugFamily:
    """The bugs of one side, in the order of the source."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._bugs: list[ClientBug] = []

    def add(
        self, number: str, source: str, *breaks: str, settings: ClientSettings = EAGER
    ) -> Callable[[Injection], Injection]:
        """Register a function that puts a bug back; its docstring is the sentence of the bug."""

        def register(put_back: Injection) -> Injection:
            sentence = " ".join((put_back.__doc__ or "").split())
            self._bugs.append(ClientBug(number, self._side, sentence, source, breaks, put_back, settings))
            return put_back

        return register

    @property
    def bugs(self) -> tuple[ClientBug, ...]:
        """All registered bugs."""
        return tuple(self._bugs)


def replace_function(patch: Patch, function: Any, value: Any) -> None:
    """Replace a function of a module there, and in every module that has imported it."""
    for module, name in places_of(function):
        patch.replace(module, name, value)


@cache
def places_of(function: Any) -> tuple[tuple[Any, str], ...]:
    """The modules that have a function, and its name in each. Raises `ValueError` if none has it."""
    places = tuple(
        (module, name)
        for key, module in tuple(sys.modules.items())
        if key.startswith(PATCHED)
        for name, each in tuple(vars(module).items())
        if each is function
    )
    if not places:
        raise ValueError(f"no module has {function!r}")
    return places
