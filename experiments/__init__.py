"""Experiments: scenarios on any back end, traces, sweeps, the papers' evaluations, and reports of them."""
