"""The parts of ``benchmarks/real_jobs.py``."""
