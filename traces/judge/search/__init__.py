"""The search for an explanation: a linearization of the operations of one group that the protocol allows.

It knows a protocol by its `Stepper` alone, and never what is right or wrong about a response.
"""
