"""Findings of the trace pipeline: the analysis of a shard on a worker, and the merge of all findings into one report.

Spark itself is used in `fencepost.traces.pipeline` only.
"""
