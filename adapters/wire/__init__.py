"""A real broker as a target: Kafka's wire protocol over TCP, one connection for each request in flight.

From the bottom up: `connection` and `pool` move frames, `admin_client` and `cluster` send the kit's own requests
and find coordinators, `discovery` describes the target, `channel` sends and records, `target` joins them. The meaning
of requests and responses never belongs here.
"""
