"""Scenarios: fabrics shared by training jobs, the task graphs of those jobs, their placement, and published traces."""
