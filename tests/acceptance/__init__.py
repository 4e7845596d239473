"""Acceptance checks: the thresholds that issues promise, measured, with committed results.

They take too long for CI: `python -m tests.acceptance [SUITE] [NAME...]`.
"""
