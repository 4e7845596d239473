"""What a scenario is made of: its context, the requests it sends, its actors, and how scenarios are selected.

The scenarios themselves live in `conformance/scenarios`.
"""
