"""Playing scenarios and schedules against a target: concurrency, pacing, restarts, loop lag, saved traces.

What to play is decided above; verdicts come from the judge.
"""
