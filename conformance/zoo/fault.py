"""Faults: what is broken on purpose in an implementation, for as long as a context lasts.

One notation serves for bugs that implementations shipped, for mutants, and for faults that tests invent: an id, the
subject that has the fault, the requirements that it may be called by, where it was seen, and the function that puts it
in. Whoever draws faults needs no more.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar

from fencepost.conformance.zoo.mutants import Mutant


class Side(StrEnum):
    """What has a fault: a coordinator, one of the parts of a client, or the operators of a consistent region."""

    COORDINATOR = "coordinator"
    MEMBER = "member"
    ASSIGNOR = "assignor"
    FETCHER = "fetcher"
    REGION = "region"


class Patch(ExitStack):
    """A context in which attributes of classes, objects and modules are replaced; its end restores them.

    It affects the whole process: faulty code runs in a process of its own.
    """

    def replace(self, owner: object, name: str, value: Any) -> None:
        """Give an attribute another value. Raises `AttributeError` if the owner does not have it."""
        own = vars(owner) if hasattr(owner, "__dict__") else {}
        if name in own:
            self.callback(setattr, owner, name, own[name])
        else:
            getattr(owner, name)
            self.callback(delattr, owner, name)
        setattr(owner, name, value)


INVENTED = "invented"
"""The source of a fault that nobody shipped."""
Injection = Callable[[Patch], None]
"""Puts a fault in by replacing named functions; its docstring says what is wrong then."""
Returned = TypeVar("Returned")
Shipped: TypeAlias = Callable[..., Returned]
"""The function that a fault stands in for: the first argument of what is put in its place."""


def owner_of(function: Callable[..., Any]) -> Any:
    """The class that has a method, or the module that defines a function."""
    owner: Any = sys.modules[function.__module__]
    for name in function.__qualname__.split(".")[:-1]:
        owner = getattr(owner, name)
    return owner


def replace_function(patch: Patch, function: Callable[..., Any], value: Any) -> None:
    """Replace a method in its class, or a function in the module that defines it."""
    patch.replace(owner_of(function), function.__name__, value)


def instead_of(
    place: Callable[..., Any], replace: Callable[[Patch, Callable[..., Any], Any], None] = replace_function
) -> Callable[[Callable[..., Any]], Injection]:
    """A decorator that puts a function in the place of a shipped one, which it gets as its first argument."""

    def make_injection(faulty: Callable[..., Any]) -> Injection:
        @wraps(faulty)
        def put_in(patch: Patch) -> None:
            shipped = getattr(owner_of(place), place.__name__)

            @wraps(shipped)
            def stand_in(*given: Any, **named: Any) -> Any:
                return faulty(shipped, *given, **named)

            replace(patch, place, stand_in)

        return put_in

    return make_injection


Setting = TypeVar("Setting")


@dataclass(frozen=True, slots=True)
class Fault(Generic[Setting]):
    """Something that is broken on purpose.

    `breaks` are the requirements that it may be called by (none: unknown), `source` is where it was seen, `apply` puts
    it in. It shows in the `setting`: the environment of a coordinator, the settings of a client. `mutant` is what
    `apply` puts in, if it is a mutant.
    """

    id: str
    subject: Side
    breaks: tuple[str, ...]
    source: str
    apply: Injection
    setting: Setting
    sentence: str
    mutant: Mutant | None = None

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Have this process carry the fault for the duration of the context. A mutant may raise any exception."""
        with Patch() as patch:
            self.apply(patch)
            yield


def mutant_fault(
    mutant: Mutant, subject: Side, setting: Setting, put_in: Callable[[Mutant, Patch], None]
) -> Fault[Setting]:
    """A mutant as a fault."""
    sentence = f"{mutant.operator} in line {mutant.line}"
    return Fault(mutant.name, subject, (), "", partial(put_in, mutant), setting, sentence, mutant)


class FaultFamily(Generic[Setting]):
    """The faults of one kind in the order of the source, of one subject and usually in one setting.

    `install` prepares the setting of a fault before it is put in.
    """

    def __init__(
        self, subject: Side, setting: Setting, install: Callable[[Setting, Patch], None] | None = None
    ) -> None:
        self._subject = subject
        self._setting = setting
        self._install = install
        self._faults: list[Fault[Setting]] = []

    def add(
        self, id: str = "", source: str = INVENTED, *breaks: str, setting: Setting | None = None
    ) -> Callable[[Injection], Injection]:
        """Register a function that puts a fault in; its docstring is the sentence of the fault, and its name the id if
        none is given."""
        shown_in = self._setting if setting is None else setting

        def register(put_in: Injection) -> Injection:
            sentence = " ".join((put_in.__doc__ or "").split())
            apply = self._within(shown_in, put_in)
            self._faults.append(Fault(id or put_in.__name__, self._subject, breaks, source, apply, shown_in, sentence))
            return put_in

        return register

    def _within(self, setting: Setting, put_in: Injection) -> Injection:
        """The function that puts a fault in once its setting is prepared."""
        install = self._install
        if install is None:
            return put_in

        def apply(patch: Patch) -> None:
            install(setting, patch)
            put_in(patch)

        return apply

    @property
    def faults(self) -> tuple[Fault[Setting], ...]:
        """All registered faults."""
        return tuple(self._faults)


def by_id(families: Sequence[FaultFamily[Setting]]) -> Mapping[str, Fault[Setting]]:
    """The faults of some families by their ids, in the order of the numbers in these."""
    faults = sorted((fault for family in families for fault in family.faults), key=lambda fault: number_of(fault.id))
    return MappingProxyType({fault.id: fault for fault in faults})


def number_of(id: str) -> int:
    """The number at the end of an id."""
    return int(id.rpartition("-")[2])
