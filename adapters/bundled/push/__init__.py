"""The push coordinator as running programs: brokers and consumers on TCP, around a ZooKeeper in memory.

Nothing of the model's handlers is used here, only the bytes of the messages: two independent implementations are the
test of both. Judging does not belong here.
"""
