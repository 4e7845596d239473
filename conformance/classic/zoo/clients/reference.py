"""The reference client that has the bugs: its settings, and the mutants of its model."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, lru_cache
from importlib.util import module_from_spec, spec_from_file_location
from types import MappingProxyType, ModuleType
from typing import Any

from fencepost.adapters.classic.client.driver import BUNDLED_CLIENT, ReferenceSubject
from fencepost.conformance.zoo.fault import FaultFamily, Injection, Patch, Side, owner_of
from fencepost.conformance.zoo.fault import instead_of as stand_in_for
from fencepost.conformance.zoo.mutants import Mutant, apply_mutant, load_changed, package_mutants, source_of
from fencepost.conformance.zoo.operators import GUARD_OPERATORS
from fencepost.model.classic import member
from fencepost.model.classic.member import member as proved
from fencepost.model.classic.member.settings import (
    COOPERATIVE_STICKY,
    RANGE,
    STICKY,
    ClientSettings,
    ResetPolicy,
)
from fencepost.model.frozen import evolve
from fencepost.model.sorts import InstanceId
from fencepost.traces.classic.client import standings

EAGER = BUNDLED_CLIENT
COOPERATIVE = evolve(EAGER, strategies=(COOPERATIVE_STICKY,))
STICKY_ONLY = evolve(EAGER, strategies=(STICKY,))
MIXED = evolve(EAGER, strategies=(COOPERATIVE_STICKY, RANGE))
NO_AUTO_COMMIT = evolve(EAGER, auto_commit=False)
"""One whose heartbeats are its only signs of life."""
LATEST = evolve(EAGER, reset_policy=ResetPolicy.LATEST)
KINDS: Mapping[str, ClientSettings] = MappingProxyType(
    {
        name: evolve(settings, request_timeout=10_000)
        for name, settings in (
            ("eager", EAGER),
            ("cooperative", COOPERATIVE),
            ("static", evolve(EAGER, instance=InstanceId("i"))),
            ("sticky by hand", evolve(STICKY_ONLY, auto_commit=False)),
            ("cooperative by hand", evolve(COOPERATIVE, auto_commit=False)),
        )
    }
)
"""The clients that a mutant is made of, one after the other; those by hand commit only what they are asked for."""
EXCLUDED = frozenset({"client", "step"})
"""Modules without decisions: values and tables."""
_DRIVER, _SETTINGS = "fencepost.adapters.classic.client.driver", "fencepost.model.classic.member.settings"


def client_family(subject: Side) -> FaultFamily[ClientSettings]:
    """A family of faults of this part of clients, which show in an `EAGER` one unless they say otherwise."""
    return FaultFamily(subject, EAGER)


def make_subject(settings: ClientSettings) -> ReferenceSubject:
    """A reference client that the kit drives; a mutant replaces this function."""
    return ReferenceSubject(settings, is_driven=True)


# -- replaced functions ------------------------------------------------------------------------------------------------

PATCHED = (
    "fencepost.model.classic.member",
    "fencepost.model.assignors",
    "fencepost.adapters.classic.client",
    "fencepost.conformance.classic.zoo",
)
"""The packages in which a replaced function is replaced, wherever it is imported."""


def replace_function(patch: Patch, function: Any, value: Any) -> None:
    """Replace a method in its class, or a function of a module there and in every module that has imported it; the
    judge goes on with the member that is proved."""
    if vars(standings)["core"] is not proved_member():
        patch.replace(standings, "core", proved_member())
    owner = owner_of(function)
    for module, name in [(owner, function.__name__)] if isinstance(owner, type) else places_of(function):
        patch.replace(module, name, value)


@cache
def proved_member() -> ModuleType:
    """A copy of the proved member of which no function is replaced."""
    spec = spec_from_file_location("proved_member", str(proved.__file__))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def instead_of(place: Callable[..., Any]) -> Callable[[Callable[..., Any]], Injection]:
    """A decorator that puts a function in the place of a shipped one, as `replace_function` does."""
    return stand_in_for(place, replace_function)


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


# -- mutants -------------------------------------------------------------------------------------------------------


def member_mutants() -> Iterator[Mutant]:
    """The mutants of every guard and comparison of the reference client's model in the order of the source."""
    return (mutant for mutant in package_mutants(member, EXCLUDED, GUARD_OPERATORS) if mutant.function)


def put_in_mutant(mutant: Mutant, patch: Patch) -> None:
    """Have reference clients run the mutant. Raises any exception while it is loaded."""
    driver, settings_module = load_client(mutant)

    def make_mutant(settings: ClientSettings) -> ReferenceSubject:
        made: ReferenceSubject = driver.ReferenceSubject(copy_values(settings, settings_module), is_driven=True)
        return made

    replace_function(patch, make_subject, make_mutant)


@lru_cache(maxsize=1)
def load_client(mutant: Mutant) -> tuple[Any, Any]:
    """The modules of the driver and of the settings with the mutant in them."""
    modules = load_changed({mutant.module: apply_mutant(source_of(mutant.module), mutant)}, [_DRIVER, _SETTINGS])
    return modules[_DRIVER], modules[_SETTINGS]


def copy_values(value: Any, module: Any) -> Any:
    """The value made of the classes of another copy of the module that its own are from."""
    kind = getattr(module, type(value).__name__, type(value))
    if isinstance(value, Enum):
        return kind[value.name]
    if is_dataclass(value):
        return kind(**{each.name: copy_values(getattr(value, each.name), module) for each in fields(value)})
    return type(value)(copy_values(each, module) for each in value) if isinstance(value, tuple | frozenset) else value
