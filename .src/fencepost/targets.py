"""Targets, and the types that a target of your own is made of: see `fencepost.conformance.api.targets`."""

from fencepost.conformance.api.targets import *  # noqa: F403
