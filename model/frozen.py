"""Frozen values, made and changed in a fraction of the time that a frozen dataclass takes.

A frozen dataclass looks up and calls a setter for every field of every value. Here a value is written as an instance
of a twin that is not frozen and has the same slots, and frozen when it is complete. The judge makes some twenty values
and changes a handful for every event of a trace.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, TypeVar

Value = TypeVar("Value")


@cache
def writable_twin(kind: type) -> type:
    """A class of the same layout whose instances can be written to."""
    return type(kind.__name__, (), {"__slots__": tuple(each.name for each in fields(kind))})


def compile_constructor(
    kind: type, arguments: str, values: Mapping[str, str], known: Mapping[str, Any]
) -> Callable[..., Any]:
    """The function of these arguments that makes a value with these expressions in its fields."""
    lines = [f"def make({arguments}):", "    _self = _new(_twin)"]
    lines += [f"    _self.{name} = {value}" for name, value in values.items()]
    lines += ["    _self.__class__ = _kind", "    return _self"]
    scope = {"_new": object.__new__, "_twin": writable_twin(kind), "_kind": kind, **known}
    exec("\n".join(lines), scope)
    make: Callable[..., Any] = scope["make"]
    return make


def fast_frozen(kind: type[Value]) -> type[Value]:
    """The frozen dataclass with slots, its values made quickly. Arguments and defaults stay as they are."""
    known: dict[str, Any] = {"_MISSING": MISSING}
    arguments, values = ["_kind"], {}
    for each in fields(kind):  # type: ignore[arg-type]
        name, default = each.name, ""
        values[name] = name
        if each.default is not MISSING:
            known[f"_default_{name}"] = each.default
            default = f"=_default_{name}"
        elif each.default_factory is not MISSING:
            known[f"_make_{name}"] = each.default_factory
            default = "=_MISSING"
            values[name] = f"_make_{name}() if {name} is _MISSING else {name}"
        arguments.append(name + default)
    kind.__new__ = compile_constructor(kind, ", ".join(arguments), values, known)  # type: ignore[method-assign]
    del kind.__init__
    # To copy or to pickle one means to make it anew.
    kind.__reduce__ = lambda value: (kind, tuple(getattr(value, name) for name in values))  # type: ignore[method-assign,assignment]
    return kind


@cache
def evolver(kind: type, *changed: str) -> Callable[..., Any]:
    """The function of a value and of these fields that makes another value with these fields changed."""
    names = [each.name for each in fields(kind)]
    if unknown := set(changed).difference(names):
        raise TypeError(f"{kind.__name__} has no field {min(unknown)!r}")
    values = {name: name if name in changed else f"_value.{name}" for name in names}
    return compile_constructor(kind, ", ".join(("_value", *changed)), values, {})


def evolve(value: Value, /, **changes: Any) -> Value:
    """The dataclass value with these fields changed: `dataclasses.replace`, many times as fast."""
    kind: Any = type(value)
    result: Value = evolver(kind, *changes)(value, *changes.values())
    return result
