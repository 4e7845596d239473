"""Theorems about coordinator and members, the lemmas that make them inductive, and the wordings that are false.

Statements are predicates on states with ghost state. They are proved in `model/classic/proofs` and checked in every
state by `model/classic/explore`.
"""
