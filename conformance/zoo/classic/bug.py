"""Known bugs: the source of each, the requirements it violates, and the function that puts it back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fencepost.conformance.zoo.classic.environments import PLAIN, Environment
from fencepost.conformance.zoo.mutation.patching import Patch

Injection = Callable[[Patch], None]


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug that an implementation shipped.

    `sentence` describes the wrong behavior, `source` is where that was read, `breaks` are the requirements that
    forbid it. `inject` replaces named functions of an implementation without bugs. The bug shows in `environment`.
    """

    number: str
    sentence: str
    source: str
    breaks: tuple[str, ...]
    inject: Injection
    environment: Environment = PLAIN

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Put the bug back in this process for the duration of the context."""
        with self.environment.activate() as patch:
            self.inject(patch)
            yield


class BugFamily:
    """The bugs of one family, in the order of the source."""

    def __init__(self) -> None:
        self._bugs: list[Bug] = []

    def add(
        self, number: str, source: str, *breaks: str, environment: Environment = PLAIN
    ) -> Callable[[Injection], Injection]:
        """Register a function that puts a bug back; its docstring is the sentence of the bug."""

        def register(put_back: Injection) -> Injection:
            sentence = " ".join((put_back.__doc__ or "").split())
            self._bugs.append(Bug(number, sentence, source, breaks, put_back, environment))
            return put_back

        return register

    @property
    def bugs(self) -> tuple[Bug, ...]:
        """All registered bugs."""
        return tuple(self._bugs)
