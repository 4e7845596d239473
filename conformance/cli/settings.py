"""Options of a command in files and in the environment.

The table `[tool.fencepost.COMMAND]` of pyproject.toml has them, and variables such as `FENCEPOST_TEST_SEED`. What is
typed comes before the environment, and the environment before the file.
"""

import argparse
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROJECT = Path("pyproject.toml")
FLAGS = {"true": True, "1": True, "false": False, "0": False}


def add_settings(parser: argparse.ArgumentParser, command: str) -> None:
    """Make defaults of what the folder and the environment say for a command. Reports a usage error for a key or a
    value that the command does not know."""
    actions = {action.dest: action for action in parser._actions if action.dest != "help"}
    for key, value in read_project(parser, command).items():
        action = actions.get(key.replace("-", "_"))
        if action is None:
            parser.error(f"{PROJECT}: unrecognized arguments: --{key}")
        set_default(parser, action, value, f"{PROJECT}: {key}")
    for name, action in actions.items():
        variable = f"FENCEPOST_{command}_{name}".upper().replace("-", "_")
        if variable in os.environ:
            set_default(parser, action, os.environ[variable], variable)


def read_project(parser: argparse.ArgumentParser, command: str) -> Mapping[str, Any]:
    """The table of a command in the project file of this folder."""
    try:
        text = PROJECT.read_text(encoding="utf-8") if PROJECT.exists() else ""
        found: Mapping[str, Any] = tomllib.loads(text).get("tool", {}).get("fencepost", {}).get(command, {})
        return dict(found)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        parser.error(f"{PROJECT}: {error}")


def set_default(parser: argparse.ArgumentParser, action: argparse.Action, value: Any, place: str) -> None:
    """Take a value from a place as the default of an option, as if it had been typed."""
    read = action.type if callable(action.type) else str
    takes_several = action.nargs in ("+", "*") or isinstance(action.default, list)
    try:
        if action.nargs == 0:
            made: Any = action.const if FLAGS[str(value).lower()] else parser.get_default(action.dest)
        else:
            words = value if isinstance(value, list) else str(value).split() if takes_several else [value]
            texts = [read(str(word)) for word in words]
            made = texts if takes_several else texts[0]
        if action.choices is not None and made not in action.choices:
            raise ValueError(f"choose from {', '.join(map(str, action.choices))}")
    except (LookupError, ValueError, argparse.ArgumentTypeError) as error:
        parser.error(f"{place}: {value!r} is no value of this option: {error}")
    parser.set_defaults(**{action.dest: made})
