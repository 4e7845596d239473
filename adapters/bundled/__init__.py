"""Bundled implementations, a folder for each protocol.

They are written apart from the model, so that holding one against the other means something.
"""
