"""The push coordinator under test: scenarios, random schedules, and the description for runs."""
