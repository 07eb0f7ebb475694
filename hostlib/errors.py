"""Errors of calls to the controller.

ControllerError
├── RefusedError      the controller answered, and refused
└── UnreachableError  no controller answered
"""

from enum import StrEnum


class RefusalReason(StrEnum):
    """Why the controller refused a request."""

    INVALID = "invalid"
    """A field of the request is wrong; the message names it."""
    UNKNOWN_JOB = "unknown job"
    """No job of that name is registered."""
    CONFLICT = "conflict"
    """The name is taken by another job or flow group."""
    UNAUTHENTICATED = "unauthenticated"
    """The client has not shown who it is: certificate or token are missing, expired or unknown."""
    NOT_OWNER = "not owner"
    """The job belongs to another client, or the client's role does not allow the call."""
    EXHAUSTED = "exhausted"
    """A limit is reached: source ports, requests per second, or the size of what is registered."""
    UNSUPPORTED = "unsupported"
    """The controller does not know this call."""
    FAILED = "failed"
    """The controller could not do it, for example because its database failed; or this library could not."""


class ControllerError(Exception):
    """A call to the controller that did not succeed. The controller keeps nothing that it did not acknowledge."""


class RefusedError(ControllerError):
    """The controller refused the request and changed nothing; the message names the field."""

    def __init__(self, reason: RefusalReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class UnreachableError(ControllerError):
    """No controller answered in time."""
