"""The trace pipeline on Spark: large numbers of traces, ingested into Parquet, judged, queried and watched.

The only package that imports Spark, Arrow and Java. It distributes the functions of `fencepost.traces` that read and
judge one trace; it has no judge of its own.
"""

from fencepost.model.errors import FencepostError


class PipelineError(FencepostError, ValueError):
    """The pipeline cannot do what was asked; the message is one line."""
