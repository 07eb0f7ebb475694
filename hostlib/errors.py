"""What a call to the controller may raise.

ControllerError
├── RefusedError      the controller answered, and refused
└── UnreachableError  there was no answer
"""

import grpc


class ControllerError(Exception):
    """A call to the controller that did not succeed; the controller has changed nothing that it has not said."""


class RefusedError(ControllerError):
    """The controller refused the request and changed nothing; the message names the field."""

    def __init__(self, status: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.status = status


class UnreachableError(ControllerError):
    """No controller answered in time."""
