"""Bad inputs of every command and kind of file, the complaint that each must get, and the check of it.

A module for each kind makes them, always the same ones. Nothing here knows how Fencepost rejects an input.
"""
