"""Fencepost: a model of the Kafka consumer-group protocol, and a kit that judges implementations by it."""
