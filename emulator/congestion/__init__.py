"""Congestion control of emulated hosts: compiled plug-ins that give a flow's window."""

from emulator.congestion.control import FIXED, CongestionControl, Event, Words

__all__ = ["FIXED", "CongestionControl", "Event", "Words"]
