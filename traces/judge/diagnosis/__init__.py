"""Diagnosis: the path with the fewest wrong responses, and where it leads.

Which requirement a wrong response violates is up to its protocol, never to this package.
"""
