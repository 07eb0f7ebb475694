"""Driven time: a controller whose clock a run moves, through a service that no production controller has.

``python -m experiments.scenarios.driven`` starts such a controller in a process of its own.
"""
