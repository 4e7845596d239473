"""`fencepost record`: a proxy between real clients and a real cluster that writes down what it sees.

Only the addresses in Metadata and FindCoordinator answers are changed, so that clients stay on the proxy; every other
byte passes as it came. No verdict is made here.
"""
