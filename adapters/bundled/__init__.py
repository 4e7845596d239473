"""What bundled implementations share. Each implementation is in its protocol's folder among the adapters.

They are written independently of the model, so that comparing the two is meaningful.
"""
