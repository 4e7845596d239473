"""A Kafka consumer group in a consistent region as a running program: operators, job control plane, region controller.

The repaired design runs here, and nothing of the model's handlers is used: two independent implementations are the test
of both. Kafka is in memory; a client of another Kafka needs the methods of `memory_kafka.MemoryConsumer`. Judging does
not belong here.
"""
