"""Benchmarks: run by hand or by the bars, never as tests. Figures are ratios or rates measured in one run."""
