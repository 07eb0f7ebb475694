"""P4Runtime server of the emulated switches (P4Runtime specification 1.4)."""
