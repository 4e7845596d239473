"""From checks and violations to a verdict for each requirement: causes, aggregation, reports of traces.

Pure functions on results. Nothing here talks to a target or prints.
"""
