"""The kernel: the protocol reduced to generations, claims and commits, for any number of members and partitions.

Its actions, its inductive invariants, and the refinement that maps coordinator and members to it.
"""
