"""Benchmarks: run by hand or by tests.acceptance, never as tests. Figures are ratios or rates measured in one run."""
