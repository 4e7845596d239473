"""The commands of `fencepost pipeline` that judge nothing: `compact`, `forget`, `extract` and `pack`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.argument_types import location
from fencepost.conformance.cli.console import Console

if TYPE_CHECKING:
    from argparse import _SubParsersAction

CORPUS_HELP = "a corpus: a folder, or a URI (s3://)"


def add_stages(stages: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands that need no Spark."""
    for name, summary, add, run_stage in (
        ("compact", "put small files of a corpus together", _add_compact, run_compact),
        ("extract", "write a trace of a corpus to a file", _add_extract, run_extract),
        ("forget", "take an input out of a corpus", _add_forget, run_forget),
        ("pack", "pack Fencepost for the workers of a cluster", _add_pack, run_pack),
    ):
        stage = stages.add_parser(name, help=summary, allow_abbrev=False)
        stage.set_defaults(run_stage=run_stage)
        add(stage)


def _add_compact(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `compact`."""
    parser.add_argument("corpus", metavar="CORPUS", type=location, help=CORPUS_HELP)


def _add_extract(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("corpus", metavar="CORPUS", type=location, help=CORPUS_HELP)
    parser.add_argument(
        "--finding", metavar="TRACE[:EVENT]", required=True, help="the trace, and the event, as a report names them"
    )
    parser.add_argument("-o", "--output", metavar="TRACE", type=Path, required=True, help="a new file for the trace")


def _add_forget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("corpus", metavar="CORPUS", type=location, help=CORPUS_HELP)
    parser.add_argument("input", metavar="INPUT", help="the name of an input as it was ingested, 'seed N', or a topic")


def _add_pack(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True, help="a new archive (.tar.gz), for --archives"
    )


def run_compact(options: argparse.Namespace, console: Console) -> int:
    """Put the small files of a corpus together."""
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.pipeline.corpus import Corpus, compact

    before, after = compact(Corpus.open(options.corpus))
    console.print_line(f"{before} files are {after} now; the corpus is {options.corpus}")
    return ExitCode.CONFORMANT


def run_extract(options: argparse.Namespace, console: Console) -> int:
    """Write the trace of a finding to a file."""
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.pipeline.corpus import Corpus
    from fencepost.traces.pipeline.trace_rows import extract_trace

    events = extract_trace(Corpus.open(options.corpus), options.finding, options.output)
    console.print_line(f"{events} events; the trace is {options.output}: fencepost replay and fencepost judge take it")
    return ExitCode.CONFORMANT


def run_forget(options: argparse.Namespace, console: Console) -> int:
    """Take an input with all its rows out of a corpus."""
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.pipeline.corpus import Corpus, forget

    counts = forget(Corpus.open(options.corpus), options.input)
    console.print_line(f"{counts.lines} lines of {options.input} are out of {options.corpus}")
    return ExitCode.CONFORMANT


def run_pack(options: argparse.Namespace, console: Console) -> int:
    """Pack Fencepost and what its workers need."""
    from fencepost.conformance.results import ExitCode
    from fencepost.traces.pipeline.spark_session import pack_environment

    size = pack_environment(options.output)
    console.print_line(
        f"{size >> 20} MiB for workers with the Python of this machine; --archives takes {options.output}"
    )
    return ExitCode.CONFORMANT
