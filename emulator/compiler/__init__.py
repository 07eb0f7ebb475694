"""Compiler from BMv2 JSON to functions, as Python source, that ``emulator.native`` turns into machine code."""
