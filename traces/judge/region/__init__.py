"""Traces of the line protocol of a region for the judge: the steps are those of `model/region`, repaired.

Nothing here decides what an operator may do; that is the model's.
"""
