"""Tests of the assignors."""
