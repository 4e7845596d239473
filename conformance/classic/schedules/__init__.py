"""Random schedules of classic groups: the interactions they are drawn from, and the interpreter of their moves.

The run hands `protocol.ClassicSchedules` to the schedule engine. Nothing of the engine belongs here.
"""
