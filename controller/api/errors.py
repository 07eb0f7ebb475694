"""The reasons for which operators get no answer."""

from controller.errors import DaemonError


class NothingPlannedError(DaemonError):
    """There is no Plan yet."""


class NothingToExplainError(DaemonError, LookupError):
    """No job and no flow of the Plan in force has the name; the message lists those that do."""
