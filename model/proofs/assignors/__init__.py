"""Theorems about the balance and the stickiness of the assignors of `model.assignors`."""
