"""Scenarios: short schedules that check requirements, a folder for each protocol."""
