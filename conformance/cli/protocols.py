"""Commands that run for one protocol, `explore`, `prove` and `serve`: its name in the arguments, and its function."""

import argparse
from collections.abc import Callable

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.usage import UsageError
from fencepost.model.protocols import default_protocol, load_part, protocols_with, registered_protocols


def protocols_for(command: str) -> list[str]:
    """The names of the protocols that a command knows, the default one first."""
    return list(protocols_with(lambda entry: entry.commands.get(command, "")))


def add_protocol(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the argument that names the protocol, after all others."""
    known, default = protocols_for(command), default_protocol().name
    text = f"{' or '.join(known)} (default: {default})"
    parser.add_argument("protocol", metavar="PROTOCOL", nargs="?", choices=known, default=default, help=text)
    parser.set_defaults(default_of=parser.get_default)


def run_protocol(options: argparse.Namespace, console: Console, command: str) -> int:
    """Run the command for the protocol that the options name."""
    run: Callable[[argparse.Namespace, Console], int] = load_part(
        registered_protocols()[options.protocol].commands[command]
    )
    return run(options, console)


def refuse_options(options: argparse.Namespace, command: str, understood: frozenset[str]) -> None:
    """Raise `UsageError` for an option that is given and says nothing about the protocol."""
    for name, value in vars(options).items():
        if name not in {*understood, "protocol", "run", "default_of"} and value != options.default_of(name):
            raise UsageError(command, f"--{name.replace('_', '-')} says nothing about {options.protocol}")
