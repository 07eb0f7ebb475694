"""The reasons for which the registry refuses a request."""

from controller.errors import DaemonError


class RegistrationError(DaemonError):
    """A request that is refused; it has changed nothing. The message names the field."""


class InvalidFieldError(RegistrationError):
    """A field has a value that it cannot have."""


class UnknownJobError(RegistrationError):
    """The job is not registered: it never was, it deregistered, or its lease ended."""


class ConflictError(RegistrationError):
    """Another job has the name, or another flow the 5-tuple."""


class NotOwnerError(RegistrationError):
    """The job belongs to another client."""


class ExhaustedError(RegistrationError):
    """No source port, or no room, is left."""


class CommitError(RegistrationError):
    """The database has not committed the change, which is undone; the message says why."""
