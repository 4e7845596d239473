"""The push coordinator as a running program on TCP around a ZooKeeper in memory, and as a target of the kit.

The program uses nothing of the model's handlers, only the bytes of the messages: two independent implementations are
the test of both. A kit's consumer responds as a scenario says; the coordinator is judged, never the consumer. Judging
does not belong here.
"""
