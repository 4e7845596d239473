"""The reference client of the model with a network: a whole client over the wire codec.

What the protocol decides is the model's; here are its connections, its fetches and an application that polls. No faults
belong here, and no verdicts.
"""
