"""The search for an explanation: a linearization of the operations of one group that the model allows.

A configuration is one possible explanation of the history so far. The search keeps all of them, and accepts the trace
as long as one is left. Attribution of a violation to requirements is in `traces/judge/diagnosis`.
"""
