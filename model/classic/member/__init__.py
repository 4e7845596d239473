"""The member: the client's half of the protocol as pure functions on frozen values.

Assignors and draining have packages of their own.
"""
