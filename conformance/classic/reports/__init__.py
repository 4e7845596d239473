"""Reports on proofs about classic groups and their exploration, as text and JSON."""
