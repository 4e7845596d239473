"""Proofs about the shipped functions of the model, by running them on symbolic values; the only room that imports z3.

The functions that are proved live elsewhere and know nothing of it. What belongs here: proxies, what is assumed, what
is claimed, and the solver. No rule of the protocol is ever written down a second time.
"""
