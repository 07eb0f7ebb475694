"""Sweeps: a grid of scenarios, settings, policies and seeds, run on processes or a Ray cluster, kept run by run."""
