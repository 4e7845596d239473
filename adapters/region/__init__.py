"""A Kafka consumer group in a consistent region as a target of the kit.

The repaired design runs here, and nothing of the model's handlers is used: two independent implementations are the test
of both. `operator` is an operator without threads, which `line_program` takes step by step as a kit asks: PROTOCOL.md
has the line protocol. Judging does not belong here.
"""
