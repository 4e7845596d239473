"""The former place of what handles signals."""

from fencepost.conformance.cli.console import run_interruptible

__all__ = ["run_interruptible"]
