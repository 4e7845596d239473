"""The events of a run: see `fencepost.conformance.events`."""

from fencepost.conformance.events import *  # noqa: F403
