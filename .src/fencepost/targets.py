"""Targets, and the types that a target of your own is made of: see `fencepost.conformance.testing.api`."""

from fencepost.conformance.testing.api import *  # noqa: F403
