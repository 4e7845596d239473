"""`fencepost serve`: the bundled coordinator behind sockets, with the broker APIs that real clients need.

One node, leader of every partition, in memory. The rules of groups belong to the coordinator, and verdicts never belong
here.
"""
