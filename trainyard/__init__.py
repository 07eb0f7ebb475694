"""Trainyard as people use it: the public Python API, and the command ``trainyard``."""
