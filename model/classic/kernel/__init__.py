"""The kernel: the protocol reduced to generations, claims and commits, for any number of members and partitions.

Its actions, and the refinement that maps coordinator and members to it. What holds of them is among the theorems.
"""
