"""The theorems about the repaired push coordinator, for any number of consumers and partitions."""
