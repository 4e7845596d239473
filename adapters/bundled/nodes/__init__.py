"""Nodes beside the one that coordinates: the leader of a bundled coordinator's groups, and the responses of the others.

One node leads every partition of the offsets topic, so that all groups move together. How groups are handled belongs to
the coordinator, how nodes are reached to the target or the server.
"""
