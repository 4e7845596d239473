"""The theorems about the repaired consistent region, for any number of operators and records.

The kernel itself is in `model/region`; no search and no rendering belongs here.
"""
