"""`fencepost serve`: the bundled coordinator behind sockets, with as much of a broker as real clients need.

One node leads every partition, in memory; of several nodes, any may coordinate the groups. Group handling belongs to
the coordinator; no verdict is made here.
"""
