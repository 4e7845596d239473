"""A Kafka consumer group in a consistent region as a running program: operators, job control plane, region controller.

The repaired design runs here, and nothing of the model's handlers is used: two independent implementations are the test
of both. `operator` is an operator without threads, which `threads` runs against a Kafka, in memory or over the network,
and `line_program` step by step as a kit asks. Judging does not belong here.
"""
