"""The parts of a scenario: its context, members, requests and checks, and the selection of scenarios for a run.

The scenarios themselves live in `conformance/scenarios`; how a run plays them does not belong here.
"""
