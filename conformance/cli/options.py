"""How commands are declared: their options as data, and what each option takes."""

import argparse
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.conformance.cli.console import Console, UsageError

if TYPE_CHECKING:
    from fencepost.adapters.address import Bootstrap


# --- declarations


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command, or an argument that is known by its place.

    `names` has a space between several. A flag has neither `metavar` nor `choices`; any other option has a value, which
    `read` makes of the text. The help ends with the `default`, unless `tells_default` is false. An option that repeats
    collects its values in a list. One that `sets` a value is a flag for it, in the field `dest`. Where there are
    `choices`, the first one is the default; a function makes them where that takes time.
    """

    names: str
    metavar: str | None = None
    help: str = ""
    read: Callable[[str], Any] = str
    default: Any = None
    nargs: str | None = None
    choices: Sequence[str] | Callable[[], Sequence[str]] = ()
    repeats: bool = False
    required: bool = False
    tells_default: bool = True
    dest: str | None = None
    sets: Any = None

    def add_to(self, parser: "argparse._ActionsContainer") -> None:
        """Add the option to a parser, or to a group of one."""
        choices = self.choices() if callable(self.choices) else self.choices
        text = self.help.replace("{choices}", " or ".join(choices))
        keywords: dict[str, Any] = {"dest": self.dest, "required": self.required or None, "help": text}
        if self.sets is not None:
            keywords |= {"action": "store_const", "const": self.sets}
        elif self.metavar is None and not choices:
            keywords |= {"action": "store_true"}
        else:
            keywords |= {"metavar": self.metavar, "type": self.read, "nargs": self.nargs, "choices": choices or None}
            keywords["default"] = choices[0] if choices and self.default is None else self.default
        if self.repeats:
            keywords |= {"action": "extend" if self.nargs else "append", "default": []}
        elif (default := keywords.get("default")) is not None and self.tells_default:
            shown = f"{default:g}" if isinstance(default, float) else default
            keywords["help"] = f"{text} (default: {shown})".lstrip()
        parser.add_argument(*self.names.split(), **{name: each for name, each in keywords.items() if each is not None})


@dataclass(frozen=True, slots=True)
class OneOf:
    """Options of which one at the most is given, or exactly one."""

    options: tuple[Option, ...]
    required: bool = False


Run = Callable[[argparse.Namespace, Console], int]
"""What a command does; returns the exit code."""
Act = Callable[[argparse.Namespace, Any], Any]
"""What an action does, as its command wants it."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it runs, and its options.

    Actions of a command are commands with their own options; `metavar` stands for their names. If the command has
    something to run as well, that finds what the action does as `act` among the parsed options.
    """

    run: Run | Act | None = None
    options: tuple[Option | OneOf, ...] = ()
    usage: str | None = None
    epilog: str | None = None
    actions: Mapping[str, tuple[str, "Command"]] = field(default_factory=dict)
    """The summary and the command, by the name of the action."""
    metavar: str = "COMMAND"

    def add_to(self, parser: argparse.ArgumentParser, runner: str = "run") -> None:
        """Add the options to the parser of the command; `runner` names what it runs among the parsed options."""
        parser.usage, parser.epilog = self.usage, self.epilog
        for option in self.options:
            if isinstance(option, OneOf):
                group = parser.add_mutually_exclusive_group(required=option.required)
                for each in option.options:
                    each.add_to(group)
            else:
                option.add_to(parser)
        if self.run is not None:
            parser.set_defaults(**{runner: self.run}, default_of=parser.get_default)
        if self.actions:
            actions = parser.add_subparsers(required=True, metavar=self.metavar)
            for name, (summary, action) in self.actions.items():
                subparser = actions.add_parser(name, help=summary, allow_abbrev=False)
                action.add_to(subparser, runner if self.run is None else "act")


def protocols_for(command: str) -> list[str]:
    """The names of the protocols that a command knows, the default one first."""
    from fencepost.model.protocols import protocols_with

    return list(protocols_with(lambda entry: entry.commands.get(command, "")))


def choose_protocol(command: str) -> Option:
    """The argument that names one of the protocols that a command knows; it comes after all options."""
    return Option("protocol", "PROTOCOL", "{choices}", choices=lambda: protocols_for(command), nargs="?")


def run_protocol(command: str, options: argparse.Namespace, console: Console) -> int:
    """Run the command for the protocol that the options name, or for the one that is meant where none is named."""
    from fencepost.model.protocols import default_protocol, load_part, registered_protocols

    entry = registered_protocols()[options.protocol] if "protocol" in options else default_protocol()
    run: Run = load_part(entry.commands[command])
    return run(options, console)


def refuse_options(options: argparse.Namespace, command: str, understood: frozenset[str]) -> None:
    """Raise `UsageError` for an option that is given and says nothing about the protocol."""
    for_all = {"protocol", "run", "default_of", "quiet", "verbose"}
    for name, value in vars(options).items():
        if name not in understood | for_all and value != options.default_of(name):
            raise UsageError(command, f"--{name.replace('_', '-')} says nothing about {options.protocol}")


# --- what options take: each function returns the value of a text, or raises `ArgumentTypeError`

MAX_NODES = 9
_MAX_PORT = 65_535
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def requirement_pattern(text: str) -> str:
    """The pattern of requirement ids that a text means in whatever spelling: JOIN-04 by join-4, Join04 or join-04, and
    JOIN-* by join-*. Other texts stay as they are."""
    if found := re.fullmatch(r"([A-Za-z]+)[-_ ]?([0-9]+)", text):
        return f"{found[1].upper()}-{found[2]:0>2}"
    return text.upper() if re.fullmatch(r"[A-Za-z]+-[0-9?*]+", text) else text


def location(text: str) -> Path | str:
    """A path, which may be given as a `file:` URI; other URIs stay as they are."""
    scheme, separator, _ = text.partition("://")
    if scheme == "file" and separator:
        from urllib.parse import unquote, urlsplit

        return Path(unquote(urlsplit(text).path))
    return text if separator else Path(text)


def number_reader(described: str, least: int, most: float = inf) -> Callable[[str], int]:
    """A function that reads whole numbers from `least` to `most`; `described` says what other texts are not."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise ArgumentTypeError(f"{text!r} is not {described}")
        return int(text)

    return read


count = number_reader("a number above 0", 1)
whole = number_reader("a whole number from 0 up", 0)
node_count = number_reader(f"a number from 1 to {MAX_NODES}", 1, MAX_NODES)
"""Reads the number of nodes of a cluster."""
port = number_reader(f"a port, which is a number from 1 to {_MAX_PORT}", 1, _MAX_PORT)


def topic_partitions(text: str) -> tuple[str, int]:
    """The name of a topic and the number of its partitions."""
    name, _, number = text.rpartition("=")
    if not name:
        raise ArgumentTypeError(f"{text!r} is not NAME=N, such as orders=6")
    return name, count(number)


def listening_port(text: str) -> int:
    """A port to listen on, 0 for any free one."""
    return 0 if text == "0" else port(text)


def address(text: str) -> tuple[str, int]:
    """The host and the port of host:port, or of kafka://host:port."""
    found = bootstrap(text)
    if len(found.addresses) > 1 or found.wants_tls:
        raise ArgumentTypeError(f"{text!r} is not host:port")
    return found.addresses[0]


def bootstrap(text: str) -> "Bootstrap":
    """The addresses of a cluster, which may be URLs."""
    from fencepost.adapters.address import CredentialsError, describe_bad_port, parse_bootstrap

    try:
        found = parse_bootstrap(text)
    except CredentialsError as error:
        raise ArgumentTypeError(str(error)) from None
    if found is None:
        problem = describe_bad_port(text)
        raise ArgumentTypeError(f"{text!r} is not host:port{problem and f': {problem}'}")
    return found


def listening_address(text: str) -> tuple[str, int]:
    """The host and the port of host:port, port 0 for any free one."""
    host, _, end = text.rpartition(":")
    return (address(f"{host}:1")[0], 0) if end == "0" else address(text)


def size(text: str) -> int:
    """The bytes of a size such as 500k, 50M or 1G."""
    found = re.fullmatch(r"([1-9][0-9]*)([kKmMgG]?)", text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not a size such as 50M")
    return int(found[1]) * _UNITS[found[2].lower()]


def seconds(text: str) -> float:
    """A duration of 10 ms or more, in seconds."""
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) is None or not 0.01 <= float(text) <= 1e9:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds")
    return float(text)


def duration(text: str) -> float:
    """A duration from 0 up, in seconds."""
    return 0.0 if text == "0" else seconds(text)


def days(text: str) -> int:
    """The days of an age such as 90d."""
    found = re.fullmatch(r"([1-9][0-9]{0,4})d", text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not a number of days such as 90d")
    return int(found[1])


def setting(text: str) -> tuple[str, str]:
    """The key and the value of KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


# --- options of several commands

TARGET_HELP = (
    "bundled, host:port, or kafka+ssl://host:port for TLS; with commas, several addresses; another scheme names "
    "another protocol; without one, the profile starts it"
)
NO_TARGET = "name a TARGET, or a --profile that starts it"
PROFILE = Option(
    "--profile", "F", "description of the target, in TOML; its [security] has the keys of TLS and SASL", Path
)
JOBS = Option("--jobs", "N", "processes that judge traces", count, 1)
FORCE = Option("--force", help="write over a file that is there")
EVERYTHING = Option("--everything", help="keep also bytes that may hold records or credentials")
SELECTION = (
    Option(
        "--only",
        "PATTERN",
        "requirements to test, such as JOIN-29 or 'JOIN-*' (default: all)",
        requirement_pattern,
        nargs="+",
        repeats=True,
    ),
    Option(
        "--exclude",
        "PATTERN",
        "requirements to leave out; scenarios that show others as well are played all the same",
        requirement_pattern,
        nargs="+",
        repeats=True,
    ),
)
SECONDS = Option("--seconds", "S", "end the run after S seconds, with exit code 3", duration)
LOUDNESS = OneOf(
    (
        Option("-v --verbose", help="a line for each step on standard error"),
        Option("-q --quiet", help="no progress, and only the last line of the output"),
    )
)
"""The options of every command that shows its progress."""
TRACES = Option("--traces", "DIR", "save every trace", Path)
_FORMS = {
    "--json": "as JSON",
    "--junit": "as JUnit XML",
    "--html": "as one HTML page",
    "--markdown": "as Markdown, for the summary of a job",
}
REPORT_FILES = tuple(
    Option(name, "F", f"write the report {form} (-: to standard output)", Path) for name, form in _FORMS.items()
)
"""The options that write a report to files, of every command that makes one."""
BADGE = "--badge"
"""The option that writes a badge, of the commands whose whole runs have one that says something."""


def report_paths(options: argparse.Namespace) -> dict[str, Path | None]:
    """The files for the report by their options; None for one that was not given."""
    return {option: getattr(options, option.removeprefix("--"), None) for option in (*_FORMS, BADGE)}
