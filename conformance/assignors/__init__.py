"""Tests of assignors without a network: groups, checks of the assignments of an assignor, and the report.

The assignor is a function. How a program becomes one belongs to the adapters.
"""
