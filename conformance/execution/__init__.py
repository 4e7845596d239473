"""Playing scenarios and schedules against a target: concurrency, pacing, restarts, loop lag, saved traces.

The packages above decide the scenarios and schedules to play; verdicts come from the judge.
"""
