"""What the switches of a run on real hosts are."""

from enum import StrEnum


class SwitchKind(StrEnum):
    """What the switches of a run on real hosts are."""

    EMULATOR = "emulator"
    """The emulator, which executes the P4 program."""
    OVS = "ovs"
    """Open vSwitch, which the controller programs by OpenFlow."""
