"""Words for a response that was seen, for any protocol."""

from typing import Any

from fencepost.model.errors import error_name
from fencepost.traces.events import Body

HIDDEN_FIELDS = frozenset({"throttle_time_ms", "_findings", "error_message"})


def format_value(value: Any) -> str:
    """A value in words."""
    if isinstance(value, bytes):
        return f"{len(value)} bytes {value[:16].hex()}" if value else "no bytes"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={format_field(name, each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(format_value(each) for each in value) + "]"
    return repr(value)


def format_field(name: str, value: Any) -> str:
    """A field of a message in words: the name of an error, not its code."""
    return error_name(value) if name == "error_code" and isinstance(value, int) else format_value(value)


def format_observed(body: Body) -> str:
    """A response as it was seen, in words."""
    return ", ".join(f"{name}={format_field(name, value)}" for name, value in body.items() if name not in HIDDEN_FIELDS)


def errors_in(body: Body) -> set[int]:
    """Every error code in a response, at any depth; 0 only if there is no other."""
    found: set[int] = set()
    stack: list[Any] = [body]
    while stack:
        value = stack.pop()
        if isinstance(value, list | tuple):
            stack.extend(value)
        elif isinstance(value, dict):
            if value.get("error_code") is not None:
                found.add(value["error_code"])
            stack.extend(value.values())
    return found - {0} or found
