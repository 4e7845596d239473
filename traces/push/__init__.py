"""The push coordinator, seen by its consumers: its traces judged by the handlers of `model/push`, and their history."""
