"""Runs: the sequence of scenarios, replays and schedules against one target that leads to a report.

How one of them is played is in `conformance/execution`; how verdicts are derived is in `conformance/analysis`.
"""
