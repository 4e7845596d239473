"""`fencepost record`: a proxy between real clients and a real cluster that records a trace.

The proxy changes only the addresses in Metadata and FindCoordinator responses, so that clients stay on it; it forwards
all other bytes unchanged. Verdicts never belong here.
"""
