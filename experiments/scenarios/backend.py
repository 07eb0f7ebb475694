"""The back ends that can run a scenario."""

from enum import StrEnum


class Backend(StrEnum):
    """A back end that can run a scenario."""

    EMULATOR = "emulator"
    SIMULATOR = "simulator"


class RunError(Exception):
    """A run that has failed; the message says why."""
