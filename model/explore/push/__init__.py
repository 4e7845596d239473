"""The push coordinator as a system to search: brokers, ZooKeeper, consumers and the channels between them.

The shipped handlers of `model/push` run in every state. The holes of the draft are found as broken properties, each
with a shortest run; small systems beside the main one have what it leaves out: time, offsets and bytes.
"""
