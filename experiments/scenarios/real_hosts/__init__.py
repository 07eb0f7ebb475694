"""A scenario in wall-clock time: real programs in network namespaces, over the emulator and under a real controller."""
