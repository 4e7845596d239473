"""A real broker as a target: Kafka's wire protocol over TCP, one connection for each request in flight.

From the bottom up: `connection` and `pool` move frames, `client` and `cluster` ask the kit's own questions and know
who coordinates what, `discovery` learns what the target is, `channel` sends and records, `target` joins them.
What a request or an answer means is not known here.
"""
