"""The former place of `UsageError`."""

from fencepost.conformance.cli.options import UsageError

__all__ = ["UsageError"]
