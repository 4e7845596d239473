"""Errors that a user can cause and correct: see `fencepost.conformance.api.errors`."""

from fencepost.conformance.api.errors import *  # noqa: F403
