"""The protocol itself: values, messages and their wire format, requirements, coordinator, invariants.

Everything here is a pure function on frozen values. Time, randomness, choices and crashes come in as
arguments. No sockets, no clock, no global state, and nothing from the storeys above; only the standard
library is imported.
"""
