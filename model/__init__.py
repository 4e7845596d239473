"""The protocol itself: values, messages and their wire format, requirements, coordinator, invariants.

Everything here is a pure function on frozen values. Time, randomness, choices and crashes are arguments. No
sockets, no clock, no global state, and nothing from the layers above; only `model/proofs` and `model/explore`
import more than the standard library.
"""
