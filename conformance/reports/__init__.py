"""Reports for people and programs: text, JSON, JUnit, progress, proofs, exploration. One module a format.

Results go in, text comes out. Nothing is decided here.
"""
