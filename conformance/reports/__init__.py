"""Reports for people and programs: text, JSON, JUnit, progress, proofs, exploration. One module a format.

Each takes results and returns text. No verdict is made here.
"""
