"""Consumers of the push coordinator as the kit plays them: connections that record what they see, and the targets.

A kit's consumer responds as a scenario says; the coordinator is judged, never the consumer.
"""
