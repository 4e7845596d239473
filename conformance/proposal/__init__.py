"""The proposal of client-side assignment beside Kafka: the runs in which they differ, for people and programs."""
