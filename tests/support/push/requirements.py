"""The requirements of push that no consumer can see kept or broken."""

NOT_ON_THE_WIRE = frozenset(
    f"PUSH-{number}" for number in ("01", "04", "10", "16", "22", "28", "31", "32", "40", "45", "47", "48", "49")
)
"""What a consumer cannot see of its coordinator: the path, watchers, the bit, what is in ZooKeeper; and what consumers
owe."""
