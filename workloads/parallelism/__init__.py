"""Parallelisms: each module turns workloads of one family into the task graph of an iteration."""
