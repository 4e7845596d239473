"""The classic protocol under test: scenarios, random schedules, clients, faults, and the description for runs."""
