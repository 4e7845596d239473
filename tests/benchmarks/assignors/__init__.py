"""Kafka's own assignors beside those of the model: do they agree, and how long does each take?"""
