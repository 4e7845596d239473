"""The Kafka wire format: what the messages look like, and a pure codec from bytes to plain dicts and back.

`tables` holds the facts (fields, types, versions), `codec` is the door. What a message *means*, sockets and time
never belong in here.
"""
