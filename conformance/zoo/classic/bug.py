"""What a known bug is: where it was found, what it breaks, and how it is put back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fencepost.conformance.zoo.classic.environments import PLAIN, Circumstances
from fencepost.conformance.zoo.patching import Patch

PutBack = Callable[[Patch], None]


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug that an implementation shipped.

    `sentence` says what the implementation does wrong, `source` is where that was read, `breaks` are the requirements
    that forbid it. `put_back` replaces named functions of an implementation without bugs; `circumstances` are what the
    bug needs in order to show.
    """

    number: str
    sentence: str
    source: str
    breaks: tuple[str, ...]
    put_back: PutBack
    circumstances: Circumstances = PLAIN

    @contextmanager
    def applied(self) -> Iterator[None]:
        """For as long as this lasts, what runs in this process has the bug."""
        with self.circumstances.applied() as patch:
            self.put_back(patch)
            yield


class Collection:
    """The bugs of one family, in the order they are written."""

    def __init__(self) -> None:
        self._bugs: list[Bug] = []

    def add(
        self, number: str, source: str, *breaks: str, circumstances: Circumstances = PLAIN
    ) -> Callable[[PutBack], PutBack]:
        """Enter a function among the bugs; its docstring says what the implementation does wrong."""

        def enter(put_back: PutBack) -> PutBack:
            sentence = " ".join((put_back.__doc__ or "").split())
            self._bugs.append(Bug(number, sentence, source, breaks, put_back, circumstances))
            return put_back

        return enter

    @property
    def bugs(self) -> tuple[Bug, ...]:
        """Everything collected."""
        return tuple(self._bugs)
