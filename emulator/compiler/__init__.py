"""Compiler from BMv2 JSON to Python source that numba turns into machine code."""
