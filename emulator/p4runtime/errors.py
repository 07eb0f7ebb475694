"""Errors of P4Runtime requests, and the results of a batch's parts."""

from collections.abc import Sequence

import grpc
from finsy.proto import p4r, rpc_code, rpc_status

from emulator.entries import (
    AlreadyExistsError,
    InvalidRequestError,
    NotFoundError,
    ResourceExhaustedError,
    SwitchError,
)

MAX_DETAILS_BYTES = 60 * 1024
"""Clients accept 64 KiB of metadata at the most."""
_LEAST_DETAIL_BYTES = 32

STATUS_DETAILS_KEY = "grpc-status-details-bin"

_STATUS_CODES: dict[type[SwitchError], grpc.StatusCode] = {
    NotFoundError: grpc.StatusCode.NOT_FOUND,
    AlreadyExistsError: grpc.StatusCode.ALREADY_EXISTS,
    InvalidRequestError: grpc.StatusCode.INVALID_ARGUMENT,
    ResourceExhaustedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
}


class RequestError(Exception):
    """A request, or one part of a batch, was refused with this status; it has changed nothing."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class BatchError(RequestError):
    """At least one part of a batch failed; ``results`` has one error per part, OK for those that succeeded."""

    def __init__(self, message: str, results: Sequence[p4r.Error]) -> None:
        super().__init__(grpc.StatusCode.UNKNOWN, message)
        self.results = results

    def status(self) -> rpc_status.Status:
        """Return the status with details that clients expect in the trailing metadata (specification, section 12.3)."""
        status = rpc_status.Status(code=rpc_code.UNKNOWN, message=str(self))
        for result in self.results:
            status.details.add().Pack(result)
            if len(status.details) * _LEAST_DETAIL_BYTES > MAX_DETAILS_BYTES:
                break
        if status.ByteSize() > MAX_DETAILS_BYTES:
            del status.details[:]
            status.message += "; they are too many to tell each apart"
        return status


def invalid_argument(message: str) -> RequestError:
    """Return the error of a request that contradicts the P4Info or itself."""
    return RequestError(grpc.StatusCode.INVALID_ARGUMENT, message)


def unimplemented(message: str) -> RequestError:
    """Return the error of a request for something that this server does not support."""
    return RequestError(grpc.StatusCode.UNIMPLEMENTED, message)


def not_found(message: str) -> RequestError:
    """Return the error of a request that names something that does not exist."""
    return RequestError(grpc.StatusCode.NOT_FOUND, message)


def permission_denied(message: str) -> RequestError:
    """Return the error of a request to change something that this client, or anybody, may not change."""
    return RequestError(grpc.StatusCode.PERMISSION_DENIED, message)


def resource_exhausted(message: str) -> RequestError:
    """Return the error of a request for more than a client may have."""
    return RequestError(grpc.StatusCode.RESOURCE_EXHAUSTED, message)


def failed_precondition(message: str) -> RequestError:
    """Return the error of a valid request that the device cannot carry out in its present state."""
    return RequestError(grpc.StatusCode.FAILED_PRECONDITION, message)


SUCCESS = p4r.Error(canonical_code=rpc_code.OK)
"""Result of a part that was carried out."""


def result_of(error: RequestError | SwitchError) -> p4r.Error:
    """Return the result of a part that was refused."""
    if isinstance(error, RequestError):
        code = error.code
    else:
        code = _STATUS_CODES.get(type(error), grpc.StatusCode.FAILED_PRECONDITION)
    return p4r.Error(canonical_code=code.value[0], message=str(error))


def require_success(parts: str, results: Sequence[p4r.Error]) -> None:
    """Raise BatchError if a part of a batch failed."""
    failures = sum(result.canonical_code != rpc_code.OK for result in results)
    if failures:
        raise BatchError(f"{failures} of {len(results)} {parts} failed", results)
