"""Trainyard's P4 program: sources, and what p4c made of them (``build/``)."""

from pathlib import Path

SOURCES = Path(__file__).resolve().parent
BUILD = SOURCES / "build"

PROGRAM = BUILD / "trainyard.json"
"""BMv2 JSON of the v1model program."""

P4INFO = BUILD / "trainyard.p4info.txtpb"
"""P4Info of the same, as text."""

MANIFEST = BUILD / "manifest.json"
"""The compiler's version and the hash of every source the two were made from."""
