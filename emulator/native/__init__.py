"""Machine code of P4 programs: a small compiler of the functions that ``emulator.compiler`` writes, and its cache."""
