"""Tests of tests of assignors."""
