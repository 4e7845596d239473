"""Nodes beside the one that coordinates: who leads the groups of a bundled coordinator, and what the others respond.

One node leads every partition of the offsets topic, so that all groups move together. How groups are handled belongs to
the coordinator, how nodes are reached to the target or the server.
"""
