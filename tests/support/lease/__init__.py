"""A toy protocol for the engines: one lease that expires, with a fencing token for writes.

It shows that explore, prove, judge, schedules, replay and reports need no change for another protocol.
"""
