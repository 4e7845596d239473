"""Proofs about the shipped functions of the model by symbolic execution; the only package that imports z3.

The functions to be proved live elsewhere and do not depend on this package. It holds symbolic values, assumptions,
proof obligations and the solver. No rule of the protocol is written down a second time.
"""
