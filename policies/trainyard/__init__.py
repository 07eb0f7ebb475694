"""Trainyard's own policy: paths, order and levels by flow group (docs/trainyard-policy.md)."""
