"""Bounded exhaustive search: every state that the coordinator, its members and their network can reach.

The handlers that run here are the shipped ones. A state is a row of columns; what happens reads one or two of them, so
a handler runs once for each combination of values, not once for each state. networkx is imported in this room alone,
for liveness, export and tours; numpy only where it is found, for speed. Nothing here knows of adapters or traces.
"""
