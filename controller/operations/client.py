"""An operator's side of the operations service: blocking, one question a call."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

import grpc

from controller.operations import operations_pb2 as wire
from controller.operations.methods import EXPLAIN, SERVICE, Listing, StateT
from hostlib.channels import addresses_of

_DEADLINE_S = 30.0

_AnswerT = TypeVar("_AnswerT")


class OperationsError(Exception):
    """The controller did not answer, or not what was asked; the message says why."""


class UnknownNameError(OperationsError):
    """The controller has no job and no flow of the name."""


class Operations:
    """The controller at ``address``, or at that of several which answers, as the one does that leads.

    To be used as a context manager.
    """

    def __init__(self, address: str | Sequence[str]) -> None:
        self._channels = {each: grpc.insecure_channel(each) for each in addresses_of(address)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for channel in self._channels.values():
            channel.close()

    def list(self, listing: Listing[StateT]) -> list[StateT]:
        """All that a listing has now. Raises OperationsError."""

        def ask(channel: grpc.Channel) -> Sequence[StateT]:
            call = channel.unary_stream(
                f"/{SERVICE}/{listing.name}", wire.ListRequest.SerializeToString, listing.state.FromString
            )
            return tuple(call(wire.ListRequest(), timeout=_DEADLINE_S))

        return [*self._ask(ask)]

    def explain(self, name: str) -> wire.Explanation:
        """The reasons for a job, or for a flow as JOB/GROUP/NUMBER. Raises OperationsError."""

        def ask(channel: grpc.Channel) -> wire.Explanation:
            call = channel.unary_unary(
                f"/{SERVICE}/{EXPLAIN}", wire.ExplainRequest.SerializeToString, wire.Explanation.FromString
            )
            return call(wire.ExplainRequest(name=name), timeout=_DEADLINE_S)

        return self._ask(ask)

    def _ask(self, ask: Callable[[grpc.Channel], _AnswerT]) -> _AnswerT:
        """Ask each until one answers; a refusal is an answer."""
        unreachable: list[str] = []
        for address, channel in self._channels.items():
            try:
                return ask(channel)
            except grpc.RpcError as error:
                unreachable.append(_no_answer(address, error))
        raise OperationsError("; ".join(unreachable))


def _no_answer(address: str, error: grpc.RpcError) -> str:
    """What it is that did not answer. Raises OperationsError where it did, and refused."""
    assert isinstance(error, grpc.Call)
    if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        return f"no controller answers at {address}: {error.details()}"
    kind = UnknownNameError if error.code() is grpc.StatusCode.NOT_FOUND else OperationsError
    raise kind(f"controller at {address}: {error.details()}") from error
