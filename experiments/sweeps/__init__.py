"""Grids of runs: scenarios, settings, policies and seeds, over processes or a Ray cluster, kept as they finish."""
