"""An application that consumes: a real client that produces, consumes, commits and leaves."""


def consume_one(bootstrap: str) -> bytes:
    """Produce a record, consume it in a group, commit, and leave; the value of the record."""
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("orders", b"one", partition=0)
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    message = next(each for each in iter(lambda: consumer.poll(20), None) if each.error() is None)
    consumer.commit(message=message, asynchronous=False)
    consumer.close()
    return bytes(message.value() or b"")
