"""What a known bug is: where it was found, what it breaks, and how it is put back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fencepost.conformance.zoo.classic.environments import PLAIN, Environment
from fencepost.conformance.zoo.mutation.patching import Patch

Injection = Callable[[Patch], None]


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug that an implementation shipped.

    `sentence` says what the implementation does wrong, `source` is where that was read, `breaks` are the requirements
    that forbid it. `inject` replaces named functions of an implementation without bugs; `environment` are what the
    bug needs in order to show.
    """

    number: str
    sentence: str
    source: str
    breaks: tuple[str, ...]
    inject: Injection
    environment: Environment = PLAIN

    @contextmanager
    def activate(self) -> Iterator[None]:
        """For as long as this lasts, what runs in this process has the bug."""
        with self.environment.activate() as patch:
            self.inject(patch)
            yield


class BugFamily:
    """The bugs of one family, in the order they are written."""

    def __init__(self) -> None:
        self._bugs: list[Bug] = []

    def add(
        self, number: str, source: str, *breaks: str, environment: Environment = PLAIN
    ) -> Callable[[Injection], Injection]:
        """Enter a function among the bugs; its docstring says what the implementation does wrong."""

        def register(put_back: Injection) -> Injection:
            sentence = " ".join((put_back.__doc__ or "").split())
            self._bugs.append(Bug(number, sentence, source, breaks, put_back, environment))
            return put_back

        return register

    @property
    def bugs(self) -> tuple[Bug, ...]:
        """Everything collected."""
        return tuple(self._bugs)
