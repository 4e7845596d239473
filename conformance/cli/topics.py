"""Kafka topics as inputs of `fencepost pipeline`: their options, and what is said of them."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fencepost.conformance.cli.argument_types import setting

if TYPE_CHECKING:
    from fencepost.traces.pipeline.topics import Topic


def add_kafka(parser: argparse.ArgumentParser) -> None:
    """Add the option for settings of the client."""
    parser.add_argument(
        "--kafka",
        metavar="KEY=VALUE",
        type=setting,
        action="append",
        default=[],
        help="of topics: a setting of the client, by librdkafka's name (security.protocol=SSL); repeatable",
    )


def topics_of(options: argparse.Namespace) -> "list[Topic]":
    """The topics among the inputs. Raises `PipelineError`."""
    from fencepost.traces.pipeline import PipelineError
    from fencepost.traces.pipeline.topics import find_topic, is_topic

    found = [find_topic(each, dict(options.kafka)) for each in options.traces if is_topic(each)]
    if found and options.source != "traces":
        raise PipelineError(f"{found[0].uri}: a topic has lines of traces, not {options.source}")
    if not found and (options.kafka or options.unended):
        raise PipelineError("--kafka and --unended are for topics: kafka://HOST:PORT/TOPIC")
    return found


def unended_lines(unended: Sequence[str]) -> list[str]:
    """The traces in topics that are not over."""
    from fencepost.conformance.reports.layout import escape_unprintable
    from fencepost.conformance.reports.report import MAX_OPEN_SHOWN

    shown = [f"  {escape_unprintable(each)}" for each in unended[:MAX_OPEN_SHOWN]]
    more = [f"  and {len(unended) - len(shown)} more"] if len(unended) > len(shown) else []
    return [
        f"{len(unended)} traces are not over, and are left to a later ingest (--unended takes them):",
        *shown,
        *more,
    ]
