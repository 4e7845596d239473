"""Swarms: many reference clients in one group, against any broker, and what has to hold of them together.

The clients are in this process, so that callbacks, records and commits of all are seen in their order. A requirement of
one client, or of the coordinator alone, belongs to `test-client` and `test`.
"""
