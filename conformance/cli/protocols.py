"""The protocols that `explore`, `prove` and `serve` know, with the functions that run them; the first is default."""

import argparse
from collections.abc import Callable, Mapping
from importlib import import_module

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.usage import UsageError

EXPLORED = {
    "classic": "explore.run_classic",
    "push": "designs.explore",
    "region": "designs.explore",
    "proposal": "proposal.explore",
}
PROVED = {"classic": "prove.run_classic", "push": "designs.prove", "region": "designs.prove"}
SERVED = {"classic": "serve.run_classic", "push": "serve_push.run", "region": "serve_region.run"}
"""By the name of the protocol, a function of a module beside this one."""


def add_protocol(parser: argparse.ArgumentParser, known: Mapping[str, str]) -> None:
    """Add the argument that names the protocol, after all others."""
    default = next(iter(known))
    text = f"{' or '.join(known)} (default: {default})"
    parser.add_argument("protocol", metavar="PROTOCOL", nargs="?", choices=list(known), default=default, help=text)
    parser.set_defaults(default_of=parser.get_default)


def run_protocol(options: argparse.Namespace, console: Console, known: Mapping[str, str]) -> int:
    """Run the command for the protocol that the options name."""
    module, _, name = known[options.protocol].partition(".")
    run: Callable[[argparse.Namespace, Console], int] = getattr(
        import_module(f"fencepost.conformance.cli.{module}"), name
    )
    return run(options, console)


def refuse_options(options: argparse.Namespace, command: str, understood: frozenset[str]) -> None:
    """Raise `UsageError` for an option that is given and says nothing about the protocol."""
    for name, value in vars(options).items():
        if name not in {*understood, "protocol", "run", "default_of"} and value != options.default_of(name):
            raise UsageError(command, f"--{name.replace('_', '-')} says nothing about {options.protocol}")
