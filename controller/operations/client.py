"""An operator's side of the operations service: blocking, one question a call."""

from types import TracebackType
from typing import Self

import grpc

from controller.operations import operations_pb2 as wire
from controller.operations.methods import EXPLAIN, SERVICE, Listing, StateT

_DEADLINE_S = 30.0


class OperationsError(Exception):
    """The controller did not answer, or not what was asked; the message says why."""


class UnknownNameError(OperationsError):
    """The controller has no job and no flow of the name."""


class Operations:
    """The controller at ``address``, to be used as a context manager."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._channel = grpc.insecure_channel(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._channel.close()

    def list(self, listing: Listing[StateT]) -> list[StateT]:
        """All that a listing has now. Raises OperationsError."""
        call = self._channel.unary_stream(
            f"/{SERVICE}/{listing.name}", wire.ListRequest.SerializeToString, listing.state.FromString
        )
        try:
            return list(call(wire.ListRequest(), timeout=_DEADLINE_S))
        except grpc.RpcError as error:
            raise self._failure(error) from error

    def explain(self, name: str) -> wire.Explanation:
        """The reasons for a job, or for a flow as JOB/GROUP/NUMBER. Raises OperationsError."""
        call = self._channel.unary_unary(
            f"/{SERVICE}/{EXPLAIN}", wire.ExplainRequest.SerializeToString, wire.Explanation.FromString
        )
        try:
            return call(wire.ExplainRequest(name=name), timeout=_DEADLINE_S)
        except grpc.RpcError as error:
            raise self._failure(error) from error

    def _failure(self, error: grpc.RpcError) -> OperationsError:
        assert isinstance(error, grpc.Call)
        if error.code() is grpc.StatusCode.UNAVAILABLE:
            return OperationsError(f"no controller answers at {self._address}: {error.details()}")
        kind = UnknownNameError if error.code() is grpc.StatusCode.NOT_FOUND else OperationsError
        return kind(f"controller at {self._address}: {error.details()}")
