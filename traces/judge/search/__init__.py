"""The search for an explanation: a linearization of the operations of one group that the model allows.

A configuration is one explanation of the history so far. The search keeps all of them.
"""
