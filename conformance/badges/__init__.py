"""Badges: what a report shows, in a line and a colour. A badge follows from the report alone, and is never better than
it: what was not checked, or is not certain, is not green."""
