"""Switches that speak P4Runtime: connections, pipelines, table entries and counters."""
