"""Draining: how a consumer hands out fetched records (`max.poll.records`, KIP-41), as pure functions."""
