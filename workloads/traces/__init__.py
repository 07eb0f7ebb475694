"""Traces of training jobs: the Lingjun dataset, synthetic traces in its format, and their jobs for simulations."""
