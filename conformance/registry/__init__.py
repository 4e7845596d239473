"""A registry of committed reports: its form, the checks of an entry, and the site made of all entries.

It orders by name and ranks nobody. Nothing here runs a target, but `reproduce`.
"""
