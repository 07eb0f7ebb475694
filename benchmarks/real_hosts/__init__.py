"""The parts of ``benchmarks/real_fabric.py``."""
