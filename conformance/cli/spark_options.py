"""The options of the stages of `fencepost pipeline` that run on Spark."""

import argparse
from pathlib import Path

from fencepost.conformance.cli.argument_types import setting


def add_spark_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where Spark runs, and how."""
    parser.add_argument("--master", metavar="URL", default="local[*]", help="Spark's master (default: local[*])")
    parser.add_argument(
        "--archives",
        metavar="FILE",
        type=Path,
        help="a packed environment for the workers of a cluster: of `fencepost pipeline pack`, or of conda-pack",
    )
    parser.add_argument(
        "--conf", metavar="KEY=VALUE", type=setting, action="append", default=[], help="a setting for Spark; repeatable"
    )


def spark_conf(options: argparse.Namespace) -> dict[str, str]:
    """The settings for Spark that the options name. Raises `PipelineError`."""
    from fencepost.traces.pipeline.spark_session import archive_settings

    packed = {} if options.archives is None else archive_settings(options.archives, options.master)
    return {**packed, **dict(options.conf)}
