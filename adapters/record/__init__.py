"""`fencepost record`: a proxy between real clients and a real cluster that writes a trace.

Only the addresses in Metadata and FindCoordinator responses are changed, so that clients stay on the proxy; all other
bytes are forwarded unchanged. The proxy's own connections to brokers may use TLS and SASL. No verdict is made here.
"""
