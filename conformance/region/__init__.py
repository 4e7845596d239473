"""A consistent region under test: scenarios, random schedules, and the description for runs."""
