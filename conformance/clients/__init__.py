"""Runs against a client: scenarios, each with a cluster and a client of its own, judged and reported.

Which scenarios there are is in the folder of a protocol. How a client is reached belongs to the adapters.
"""
