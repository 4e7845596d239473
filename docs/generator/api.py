"""The reference of the public API: `fencepost` and `fencepost.testing`."""

import enum
import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any

import fencepost
import fencepost.testing

MODULE_NAME = re.compile(r"\b(?:fencepost|collections|typing|pathlib|os|enum)\.(?:\w+\.)*(?=[A-Za-z_])")


def api_pages() -> dict[str, str]:
    """A page for each public module."""
    return {
        "reference/api/fencepost.md": module_page(fencepost),
        "reference/api/testing.md": module_page(fencepost.testing) + plugin_section(),
    }


def module_page(module: ModuleType) -> str:
    """What a public module says of itself, and each of its names."""
    text = f"# `{module.__name__}`\n\n{inspect.getdoc(module) or ''}\n"
    return text + "".join(f"\n{describe(name, getattr(module, name))}" for name in module.__all__)


def describe(name: str, value: Any) -> str:
    """A public name: its signature, what it is for, and its methods."""
    if isinstance(value, ModuleType):
        return f"## `{name}`\n\n{inspect.getdoc(value) or ''}\n"
    text = f"## `{name}`\n\n"
    if not inspect.isclass(value) and not inspect.isroutine(value):
        return text + f"The type `{MODULE_NAME.sub('', str(value))}`.\n"
    text += f"```text\n{signature_of(name, value)}\n```\n\n{inspect.getdoc(value) or ''}\n"
    if inspect.isclass(value):
        text += "".join(member_lines(value))
    return text


def member_lines(kind: type) -> Iterator[str]:
    """The public methods and properties of a class; the values of an enumeration."""
    if issubclass(kind, enum.Enum):
        yield "\n" + ", ".join(f"`{each.value}`" for each in kind) + "\n"
        return
    for name, member in inspect.getmembers(kind):
        told = inspect.getdoc(member)
        if name.startswith("_") or name not in defined_in(kind) or not told:
            continue
        if inspect.isroutine(member):
            yield f"\n### `{signature_of(name, member)}`\n\n{told}\n"
        elif isinstance(member, property):
            yield f"\n### `{name}`\n\n{told}\n"


def defined_in(kind: type) -> set[str]:
    """The names that a class and those of the kit that it is made of define."""
    own = (each for each in kind.__mro__ if each.__module__.startswith("fencepost"))
    return {name for each in own for name in vars(each)}


def signature_of(name: str, value: Any) -> str:
    """The signature with the plain names of types."""
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError):
        return name
    if is_dataclass(value) and isinstance(value, type):
        signature = re.sub(r"<factory>", "...", signature)
    text = MODULE_NAME.sub("", re.sub(r" object at 0x\w+|<class '([\w.]+)'>", r"\1", signature)).replace("'", "")
    return name + text.replace("(self, ", "(").replace("(self)", "()")


def plugin_section() -> str:
    """The options, markers and fixtures of the pytest plugin."""
    from fencepost.conformance.testing import plugin

    lines = [
        f"| `--fencepost-{name}{f' {metavar}' if metavar else ''}` | {text} |"
        for name, (metavar, text) in plugin.TEXTS.items()
    ]
    text = "\n## Options of pytest\n\nEach also stands in the configuration file, with underscores.\n\n"
    text += "| option | meaning |\n|---|---|\n" + "\n".join(lines) + "\n\n## Markers\n\n"
    text += "".join(f"- `{marker.partition(': ')[0]}`: {marker.partition(': ')[2]}\n" for marker in plugin.MARKERS)
    text += "\n## Fixtures\n\n"
    for name, value in vars(plugin).items():
        if name.startswith("fencepost_"):
            text += f"- `{name}`: {inspect.getdoc(value)}\n"
    return text
