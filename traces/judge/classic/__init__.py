"""What the judge knows of the classic protocol: matching of responses, non-determinism, failover, expiry, reduction."""
