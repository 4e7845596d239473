"""Programs that run one consumer of an unmodified client, for `fencepost test-client`."""
