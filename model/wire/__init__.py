"""The Kafka wire format: schemas of messages, and a pure codec between bytes and plain dicts.

`tables` holds the schemas (fields, types, versions), `codec` is the interface. The meaning of messages, sockets and
time do not belong here.
"""
