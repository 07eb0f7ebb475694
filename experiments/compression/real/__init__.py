"""Real ranks with stand-in computation, over real ports of the emulator: they confirm what virtual time says."""
