"""The line protocol of a region: its traces judged by the handlers of `model/region`, and their history."""
