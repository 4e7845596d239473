"""Faulty classic coordinators: known bugs, the environments that some need, and targets that crash on errors."""
