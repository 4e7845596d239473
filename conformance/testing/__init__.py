"""The parts of a test suite for a coordinator with pytest: targets, cases, schedules, a fake, and the plugin itself.

Runs, verdicts and traces are made by the packages below and only shown to pytest here. No command belongs here.
"""
