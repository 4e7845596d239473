"""Assignors: who of a group reads which partition, as pure functions of subscriptions and partition counts.

Range, round robin, sticky and cooperative sticky, by the rules of member.md §5, racks included (KIP-881). `registry`
has them by their names on the wire; `properties` has what every such assignor promises, as checks for any assignment,
whoever made it. How members speak to assignors is in `consumer_protocol`. Callbacks, requests and the coordinator do
not belong here.
"""
