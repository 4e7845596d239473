"""The reference of the command line, made of the parsers of the commands."""

import argparse
import os
from collections.abc import Iterator, Mapping
from unittest.mock import patch

from fencepost.conformance.cli import COMMANDS, build_parser
from fencepost.conformance.results import ExitCode

WIDTH = "100"
EXIT_CODES: Mapping[ExitCode, str] = {
    ExitCode.CONFORMANT: "nothing that was checked is violated; `replay`: FIXED; `prove`, `explore`: all holds",
    ExitCode.VIOLATION: "a violation; `replay`: STILL FAILS or DIFFERENT; `report --compare`: newly broken; "
    "`badge --check`, `registry check`: something does not follow",
    ExitCode.COULD_NOT_RUN: "the run was impossible: usage, target, input or output, told in one line; and "
    "`fencepost` alone, which shows the help as `fencepost help` does, since nothing was judged",
    ExitCode.INCONCLUSIVE: "the run was cut short, or something that was put to the test stayed undecided",
}


def command_pages() -> dict[str, str]:
    """A page for each command, and one that lists them with the exit codes."""
    rows = "".join(f"| [`fencepost {name}`]({name}.md) | {line} |\n" for name, (_, line) in COMMANDS.items())
    codes = "".join(f"| {code.value} | {text} |\n" for code, text in EXIT_CODES.items())
    index = f"# Commands\n\n| command | what it does |\n|---|---|\n{rows}\n"
    index += f"## Exit codes\n\n| code | meaning |\n|---|---|\n{codes}"
    pages = {"reference/commands/index.md": index}
    return pages | {f"reference/commands/{name}.md": command_page(name) for name in COMMANDS}


def command_page(name: str) -> str:
    """The help of a command and of those below it."""
    parser = next(parser for found, parser in subparsers_of(build_parser([name])) if found == name)
    blocks = [(f"fencepost {name}", parser)]
    blocks += [(f"fencepost {name} {below}", each) for below, each in subparsers_of(parser)]
    text = f"# `fencepost {name}`\n\n{COMMANDS[name][1].capitalize()}.\n"
    with patch.dict(os.environ, {"COLUMNS": WIDTH, "NO_COLOR": "1"}):
        for title, each in blocks:
            heading = f"\n## `{title}`\n" if len(blocks) > 1 else ""
            text += f"{heading}\n```text\n{each.format_help().rstrip()}\n```\n"
    return text


def subparsers_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The parsers of the commands below a parser, by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()
