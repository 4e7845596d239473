"""Who starves under greedy draining: theorems about `model.draining`."""
