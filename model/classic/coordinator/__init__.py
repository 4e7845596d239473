"""The reference coordinator: one pure function a request around the core, for one group id.

State and request go in; state, responses and the rule that applied come out. Validation, loading, availability and
failed writes live here, and what a classic group says of itself to `model/groups`; membership lives in the core.
"""
