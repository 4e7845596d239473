"""Theorems about starvation under the draining rules of `model.draining`."""
