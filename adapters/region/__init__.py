"""The region beside others: its operators as consumers of a real Kafka, and its line protocol as a target of the kit.

PROTOCOL.md has the line protocol for implementers. The region itself is in `adapters/bundled/region`; judging does not
belong here.
"""
