"""Trace files: JSON Lines on disk, read strictly and written so that whole lines survive a crash.

`traces/CORPUS_FORMAT.md` is the format. Events go in and come out; their meaning is the judge's business.
"""
