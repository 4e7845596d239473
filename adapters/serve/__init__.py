"""`fencepost serve`: the bundled coordinator behind sockets, with as much of a broker as real clients need.

One node, leader of everything, in memory. What a group may do is the coordinator's business and none of this room's;
neither is any verdict.
"""
