"""The scenario framework: the context with its requests and checks, actors, and the selection of scenarios.

The scenarios themselves live in `conformance/scenarios`.
"""
