"""Importers: broker logs and packet captures as traces.

Facts that a source does not show are left out, never guessed. Judging is not done here.
"""
