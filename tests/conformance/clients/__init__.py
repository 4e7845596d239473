"""Tests of runs against clients."""
