"""The protocols that can be tested: a description of each for runs, replays and reports, and the default one.

No engine belongs here: a description only names the parts that a protocol has.
"""
