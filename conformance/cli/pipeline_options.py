"""The options of `fencepost pipeline`. Nothing here waits for Spark."""

import argparse
from collections.abc import Callable
from pathlib import Path

from fencepost.conformance.cli.importing import port_number

BUCKETS = 16
WATCH_BUCKETS = 4


def add_commands(parser: argparse.ArgumentParser, count: Callable[[str], int]) -> None:
    """Give the parser its commands."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="stage")
    add_ingest(
        commands.add_parser("ingest", help="read traces into a corpus of Parquet files", allow_abbrev=False), count
    )
    judge = commands.add_parser("judge", help="judge a corpus, and query its invariants", allow_abbrev=False)
    add_judge(judge)
    add_watch(commands.add_parser("watch", help="judge traces as they land in a folder", allow_abbrev=False), count)
    campaign = commands.add_parser("campaign", help="test a target with many seeds at once", allow_abbrev=False)
    add_campaign(campaign, count)


def add_watch(parser: argparse.ArgumentParser, count: Callable[[str], int]) -> None:
    """`fencepost pipeline watch`."""
    parser.add_argument("landing", metavar="FOLDER", type=Path, help="where whole trace files are moved to")
    parser.add_argument("--to", metavar="DIR", type=Path, required=True, help="what is found, and the checkpoint")
    parser.add_argument("--once", action="store_true", help="end when all that has landed is judged")
    parser.add_argument(
        "--buckets",
        metavar="N",
        type=count,
        default=WATCH_BUCKETS,
        help=f"over how many buckets the groups of a trace are spread (default: {WATCH_BUCKETS}); the same each time",
    )
    add_spark(parser)


def add_campaign(parser: argparse.ArgumentParser, count: Callable[[str], int]) -> None:
    """`fencepost pipeline run_seeds`."""
    parser.add_argument("target", metavar="TARGET", help="bundled, or kafka://host:port")
    parser.add_argument("--to", metavar="CORPUS", type=Path, required=True, help="the folder of the campaign's corpus")
    parser.add_argument("--seeds", metavar="N", type=count, required=True, help="seeds 1 to N")
    parser.add_argument(
        "--schedules", metavar="N", type=count, default=40, help="random schedules of each seed (default: 40)"
    )
    parser.add_argument("--full", action="store_true", help="all scenarios for each seed, not the quickest alone")
    parser.add_argument("--profile", metavar="F", type=Path, help="what to know about the target, in TOML")
    add_reports(parser)
    add_spark(parser)


def add_reports(parser: argparse.ArgumentParser) -> None:
    """Where the report goes besides the screen."""
    parser.add_argument("--json", metavar="F", type=Path, help="write the report as JSON")
    parser.add_argument("--junit", metavar="F", type=Path, help="write the report as JUnit XML")


def add_judge(parser: argparse.ArgumentParser) -> None:
    """`fencepost pipeline judge`."""
    parser.add_argument("corpus", metavar="CORPUS", type=Path, help="the folder of a corpus")
    parser.add_argument("--to", metavar="DIR", type=Path, help="where the tables go (default: CORPUS/judged)")
    parser.add_argument("--queries", action="store_true", help="query the invariants alone; nothing is judged")
    add_reports(parser)
    add_spark(parser)


def add_ingest(parser: argparse.ArgumentParser, count: Callable[[str], int]) -> None:
    """`fencepost pipeline ingest`."""
    parser.add_argument(
        "traces", metavar="PATH", nargs="+", type=Path, help="a trace, or a folder with traces (*.jsonl, *.jsonl.gz)"
    )
    parser.add_argument("--to", metavar="CORPUS", type=Path, required=True, help="the folder of the corpus")
    parser.add_argument(
        "--from",
        dest="source",
        choices=("traces", "logs", "captures"),
        default="traces",
        help="what PATH is: traces, logs of Kafka brokers, or packet captures (default: traces)",
    )
    parser.add_argument(
        "--port", metavar="P", type=port_number, action="append", help="of captures: a broker's port (9092)"
    )
    parser.add_argument("--profile", metavar="F", type=Path, help="of captures: settings and grace of the cluster")
    parser.add_argument(
        "--buckets",
        metavar="N",
        type=count,
        default=BUCKETS,
        help=f"over how many buckets a new corpus spreads its groups (default: {BUCKETS})",
    )
    add_spark(parser)


def add_spark(parser: argparse.ArgumentParser) -> None:
    """Where Spark runs."""
    parser.add_argument("--master", metavar="URL", default="local[*]", help="Spark's master (default: local[*])")
    parser.add_argument(
        "--conf",
        metavar="KEY=VALUE",
        type=key_value,
        action="append",
        default=[],
        help="a setting for Spark; repeatable",
    )


def key_value(text: str) -> tuple[str, str]:
    """KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value
