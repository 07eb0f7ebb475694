"""Evaluations: published experiments repeated, beside the published figures, and experiments of our own.

``catalogue`` lists them; each has a module with its options, cases, measurement, assumptions and findings.
"""
