"""The judge's part for the classic protocol: matching of responses, non-determinism, failover, expiry, reduction."""
