"""Bundled implementations, a folder for each protocol.

They are written independently of the model, so that comparing the two is meaningful.
"""
