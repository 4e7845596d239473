"""Ways to reach an implementation: the bundled coordinator, the Kafka wire, the server, real clients.

Requests go in, events come out in the trace format. No verdict is made here.
"""
