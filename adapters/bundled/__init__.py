"""Bundled implementations, a folder for each protocol.

They are written independently of the model, so that checking one against the other has a meaning.
"""
