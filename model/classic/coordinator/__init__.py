"""The reference coordinator: one pure function a request around the core, for one group id.

State and request go in; state, responses and the rule that applied come out. Validation, offsets, administration,
availability and failed writes live here; membership lives in the core.
"""
