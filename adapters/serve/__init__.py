"""`fencepost serve`: the bundled coordinator behind sockets, with as much of a broker as real clients need.

One node that leads every partition, in memory. Group handling belongs to the coordinator; no verdict is made here.
"""
