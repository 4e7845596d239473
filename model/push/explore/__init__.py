"""The push coordinator as a system to search: brokers, ZooKeeper, consumers and the channels between them."""
