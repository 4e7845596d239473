"""Random schedules of classic groups: the Hypothesis state machine that draws them, its rules, and the interpreter.

The run hands `protocol.ClassicSchedules` to the schedule engine. Nothing of the engine belongs here.
"""
