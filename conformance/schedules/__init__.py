"""Random schedules: generated from a seed, played against a target, shrunk when they fail.

Modules here form the engine, which sees a protocol through `protocol.ScheduleProtocol` alone. What a protocol adds lies
in a package of its name and is handed in by the run. Nothing here belongs to one target or one requirement.
"""
