"""Measure jobs that describe neither profile nor flows, from the counters of switches."""
