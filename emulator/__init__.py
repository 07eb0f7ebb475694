"""Packet-level emulator: executes a compiled P4 program for every packet of a fabric."""
