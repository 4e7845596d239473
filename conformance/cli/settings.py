"""Options of a command in files and in the environment.

The table `[options.COMMAND]` of fencepost.toml has them, or `[tool.fencepost.COMMAND]` of pyproject.toml, and variables
such as `FENCEPOST_TEST_SEED`, or `FENCEPOST_SEED` for every command with that option. What is typed comes before the
environment, and the environment before the files.
"""

import argparse
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PLACES = {Path("pyproject.toml"): ("tool", "fencepost"), Path("fencepost.toml"): ("options",)}
"""The files that have options, with the tables in which those of a command are; the last one counts."""
FLAGS = {"true": True, "1": True, "false": False, "0": False}


def add_settings(parser: argparse.ArgumentParser, command: str) -> None:
    """Make defaults of what the folder and the environment say for a command. Reports a usage error for a key or a
    value that the command does not know."""
    actions = {action.dest: action for action in parser._actions if action.dest != "help"}
    for path, tables in PLACES.items():
        for key, value in read_options(parser, path, (*tables, command)).items():
            action = actions.get(key.replace("-", "_"))
            if action is None:
                parser.error(f"{path}: unrecognized arguments: --{key}")
            set_default(parser, action, value, f"{path}: {key}")
    for name, action in actions.items():
        for variable in (f"FENCEPOST_{name}", f"FENCEPOST_{command}_{name}"):
            variable = variable.upper().replace("-", "_")
            if variable in os.environ:
                set_default(parser, action, os.environ[variable], variable)


def read_options(parser: argparse.ArgumentParser, path: Path, tables: Sequence[str]) -> Mapping[str, Any]:
    """What a file of this folder has in a table within tables."""
    try:
        found: Any = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for table in tables:
            found = found.get(table, {})
        return dict(found)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        parser.error(f"{path}: {error}")


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
