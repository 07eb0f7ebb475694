"""Trainyard's P4 program: its sources, and the output of p4c in ``build/``."""

from pathlib import Path

SOURCES = Path(__file__).resolve().parent
BUILD = SOURCES / "build"

PROGRAM = BUILD / "trainyard.json"
"""BMv2 JSON of the v1model program."""

P4INFO = BUILD / "trainyard.p4info.txtpb"
"""P4Info of the same program, as text."""

MANIFEST = BUILD / "manifest.json"
"""Compiler version and hash of every source of the two."""

TNA_P4INFO = BUILD / "tna" / "trainyard.p4info.txtpb"
"""P4Info of the program for Tofino, as text."""

TNA_DEVICE_CONFIG = BUILD / "tna" / "device_config.bin.xz"
"""What ``bf_switchd``'s P4Runtime server loads with it, compressed."""

TNA_RESOURCES = BUILD / "tna" / "resources.md"
"""What it takes of the chip."""

TNA_MANIFEST = BUILD / "tna" / "manifest.json"
"""Compiler version and hash of every source of it."""
