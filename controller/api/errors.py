"""The reasons for which operators get no answer."""

from controller.errors import DaemonError


class NothingPlannedError(DaemonError):
    """There is no Plan yet."""


class NothingToExplainError(DaemonError, LookupError):
    """No job and no flow of the Plan in force has the name; the message lists those that do."""


class BusyError(DaemonError):
    """Others have asked for so much that there is no time for the call."""
