"""Tofino's traffic manager: eight queues in strict priority for the ports that a fabric's cables reach."""
