"""The kit's power to find bugs: thresholds, compared with the recorded results and with a new run."""
