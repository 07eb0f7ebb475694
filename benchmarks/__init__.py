"""Benchmarks of the emulator, the simulator, the controller and the policies. Each module says how to run it."""
