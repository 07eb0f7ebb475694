"""Advice: which parallelism of a job is the fastest on its cluster, and where the time of an iteration goes."""
