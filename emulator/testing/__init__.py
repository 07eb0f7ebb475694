"""Tests of P4 programs: switches that run them in virtual time, for pytest and for any other Python.

pytest finds the fixture ``p4`` (``emulator.testing_plugin``) wherever Trainyard is installed.
"""

from emulator.testing.networks import Network
from emulator.testing.packets import Difference, PacketLike
from emulator.testing.programs import Program, ProgramError, Programs
from emulator.testing.switches import Digest, PacketInMessage, Switch
from emulator.testing.tables import Table

__all__ = [
    "Difference",
    "Digest",
    "Network",
    "PacketInMessage",
    "PacketLike",
    "Program",
    "ProgramError",
    "Programs",
    "Switch",
    "Table",
]
