"""Values that may be kept, passed on and counted from, and that nobody may look at.

A step that goes well on them does the same whatever they are. Only the identity of a value shows: it is none of the
protocol's business.
"""

from collections.abc import Iterator
from typing import Any


class OpaqueValueRead(Exception):
    """Somebody looked at an opaque value."""


def refuse(*_: object) -> Any:
    """Raise `OpaqueValueRead`."""
    raise OpaqueValueRead


class Opaque:
    """A value without any operation."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        raise OpaqueValueRead


READS = (
    *("eq", "ne", "lt", "le", "gt", "ge", "hash", "bool", "int", "index", "float", "complex", "round", "trunc"),
    *("floor", "ceil"),
    *("str", "repr", "format", "bytes", "len", "iter", "next", "contains", "getitem", "call", "neg", "pos", "abs"),
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "and", "or", "xor", "lshift", "rshift"),
    *("radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rmod", "rdivmod", "rpow", "rand", "ror", "rxor", "invert"),
)
for _name in READS:
    setattr(Opaque, f"__{_name}__", refuse)


class OpaqueTime(Opaque):
    """The present moment, or one `later` by so many milliseconds: it may be counted from."""

    __slots__ = ("later",)

    def __init__(self, later: int = 0) -> None:
        self.later = later

    def __add__(self, duration: int) -> "OpaqueTime":
        return OpaqueTime(self.later + duration) if type(duration) is int else refuse()

    __radd__ = __add__


class OpaqueMapping(Opaque):
    """A mapping to which entries may be added, as in `{**mapping, key: value}`; `REST` then stands for its own."""

    __slots__ = ()

    def keys(self) -> "OpaqueKeys":
        """The keys, which can be taken over alone."""
        return OpaqueKeys()

    def __getitem__(self, key: object) -> object:
        return REST if key is REST else refuse()


class OpaqueKeys(Opaque):
    """The keys of an opaque mapping."""

    __slots__ = ()

    def __iter__(self) -> Iterator[object]:
        yield REST


class Rest(Opaque):
    """The entries of an opaque mapping, as the key that stands for them."""

    __slots__ = ()
    __hash__ = object.__hash__


REST = Rest()
"""The key, and the value, of the entries of an opaque mapping."""
