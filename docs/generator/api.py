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

PLUGIN_OPTIONS = "conformance/testing/plugin.py"
MODULE_NAME = re.compile(r"\b(?:fencepost|collections|typing|pathlib|os|enum)\.(?:\w+\.)*(?=[A-Za-z_])")


def api_pages() -> dict[str, str]:
    """A page for each public module."""
    return {
        "reference/api/fencepost.md": module_page(fencepost),
        "reference/api/testing.md": module_page(fencepost.testing) + plugin_section(),
    }


def module_page(module: ModuleType) -> str:
    """What a public module says of itself, and each of its names."""
    text = f"# `{module.__name__}`\n\n{indent_examples(inspect.getdoc(module) or '')}\n"
    names: list[str] = list(module.__all__)
    return text + "".join(f"\n{block}" for name in names for block in [describe(name, getattr(module, name))])


def describe(name: str, value: Any) -> str:
    """A public name: its signature, what it is for, and its methods."""
    if isinstance(value, ModuleType):
        return f"## `{name}`\n\n{indent_examples(inspect.getdoc(value) or '')}\n"
    own = inspect.getdoc(value) if inspect.isclass(value) or callable(value) else None
    text = f"## `{name}`\n\n"
    if callable(value) and not is_plain_alias(value):
        text += f"```text\n{signature_of(name, value)}\n```\n\n"
    text += f"{indent_examples(own or '')}\n"
    if inspect.isclass(value):
        text += "".join(member_lines(value))
    return text


def is_plain_alias(value: Any) -> bool:
    """Whether a value is no class and no function."""
    return not (inspect.isclass(value) or inspect.isroutine(value))


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
            yield f"\n### `{signature_of(name, member)}`\n\n{indent_examples(told)}\n"
        elif isinstance(member, property):
            yield f"\n### `{name}`\n\n{indent_examples(told)}\n"


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


def indent_examples(text: str) -> str:
    """A docstring as Markdown: its indented blocks are code already."""
    return text
