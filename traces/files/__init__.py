"""Trace files: JSON Lines on disk, read strictly and written so that whole lines survive a crash.

`traces/FORMAT.md` describes the format. This package reads and writes events; the judge interprets them.
"""
