"""The process that Spark forks Python workers from, with the judge imported: so it is imported once for all workers."""

from fencepost.conformance.pipeline import shard_findings
from fencepost.traces.pipeline import query_corpus
from fencepost.traces.pipeline.spark_session import DAEMON_MODULE, serve_workers

IMPORTED = (shard_findings, query_corpus)
"""What tasks of `pipeline judge` need."""
DAEMON_CONF = {DAEMON_MODULE: "fencepost.conformance.pipeline.worker_daemon"}
"""The setting of Spark that names this module."""

if __name__ == "__main__":
    serve_workers()
