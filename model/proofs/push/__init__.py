"""The theorems about the repaired push coordinator, for any number of consumers and partitions.

The kernel itself is in `model/push`; no search and no rendering belongs here.
"""
