"""The ways in which the kit looks for what is wrong with a specimen, and two that it is measured against."""

SCHEDULES = "schedules"
"""Random schedules, by the seed."""
SCENARIOS = "scenarios"
TOURS = "tours"
REMARKS = "remarks"
"""What scenarios show to be allowed but unusual, though it is not with the shipped coordinator."""
STRATEGIES = (SCHEDULES, SCENARIOS, TOURS, REMARKS)
"""The kit's own, the plainest first; what was found by one need not be looked for by the next."""
HYPOTHESIS, WALK = "hypothesis", "walk"
"""Baselines: plain Hypothesis, one request for each rule, and a random walk."""
