"""Bad inputs of every command and kind of file, what Fencepost must say to each, and whether it did.

A module for each kind makes them, always the same ones. Nothing here knows how Fencepost rejects an input.
"""
