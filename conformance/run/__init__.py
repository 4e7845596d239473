"""Runs: which scenarios and schedules are played in which order, against which target, until the report is whole."""
