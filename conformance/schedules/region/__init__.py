"""Random schedules of a region: walks through the model's transition system, each step as requests of the line
protocol.

What a step may be is the model's; what a response must be is the judge's. Nothing else decides here.
"""
