"""Random schedules against a client: what its cluster, its application and a second member do.

The engine is that of schedules against coordinators; here are the ways to play a schedule with a client, and what its
verdict says to the engine. What can happen in a schedule is in the folder of a protocol.
"""
