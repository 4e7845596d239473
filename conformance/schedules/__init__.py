"""Random schedules: drawn by a Hypothesis state machine against what the model foretells, played as scenarios are.

A schedule is plain data, so that it can be played again, on any target, and made shorter. What belongs to one target or
to one requirement does not belong here.
"""
