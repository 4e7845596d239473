"""How good the kit is at finding what is wrong: thresholds, held against the record and against a run of today."""
