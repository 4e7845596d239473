"""Badges: the result of a report in a line and a colour.

A badge follows from the report alone and is never better than it: an unchecked or uncertain requirement is not green.
"""
