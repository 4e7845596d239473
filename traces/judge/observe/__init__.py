"""Observations besides the responses of groups: topics, coordinators, log steps, and groups in partial traces."""
