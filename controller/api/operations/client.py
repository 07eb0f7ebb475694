"""An operator's side of the operations service: blocking, one question a call."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from time import monotonic, sleep
from types import TracebackType
from typing import Self, TypeVar

import grpc

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.methods import EXPLAIN, SERVICE, Listing, StateT
from controller.leadership.leader_gate import LEADS_NOT
from hostlib.failover_channel import unique_addresses

_DEADLINE_S = 30.0
_TAKE_OVER_S = 15.0
"""In which another leads, where the lease is not much longer than usual."""
_LOOK_S = 0.25

_AnswerT = TypeVar("_AnswerT")


class OperationsError(Exception):
    """The controller did not answer, or not what was asked; the message says why."""


class UnknownNameError(OperationsError):
    """The controller has no job and no flow of the name."""


class Operations:
    """The controller at ``address``, or at that of several which answers, as the one does that leads.

    While none of several leads, it is waited for a while: another is about to.
    To be used as a context manager.
    """

    def __init__(self, address: str | Sequence[str]) -> None:
        self._channels = {each: grpc.insecure_channel(each) for each in unique_addresses(address)}
        self._threads = ThreadPoolExecutor(len(self._channels))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for channel in self._channels.values():
            channel.close()  # which ends what is still being asked
        self._threads.shutdown(cancel_futures=True)

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
        """Ask all at once, and again those that do not lead; the first answer counts, and a refusal is one."""
        end_s = monotonic() + (_TAKE_OVER_S if len(self._channels) > 1 else 0.0)
        silences: dict[str, _Silence] = {}
        asking = {self._threads.submit(ask, channel): address for address, channel in self._channels.items()}
        while asking:
            answered, _ = wait(asking, return_when=FIRST_COMPLETED)
            for asked in answered:
                address = asking.pop(asked)
                try:
                    return asked.result()
                except grpc.RpcError as error:
                    silences[address] = _silence(address, error)
            if monotonic() < end_s and (idle := [name for name, silence in silences.items() if silence.leads_not]):
                sleep(_LOOK_S)
                for address in set(idle) - set(asking.values()):
                    asking[self._threads.submit(ask, self._channels[address])] = address
        raise OperationsError("; ".join(silences[address].reason for address in self._channels))


@dataclass(frozen=True, slots=True)
class _Silence:
    """Why one has not answered; it may be there, and say that it does not lead."""

    reason: str
    leads_not: bool


def _silence(address: str, error: grpc.RpcError) -> _Silence:
    """Raises OperationsError where it has answered, and refused."""
    assert isinstance(error, grpc.Call)
    if error.code() is grpc.StatusCode.UNAVAILABLE and error.details().startswith(LEADS_NOT):
        return _Silence(f"{address}: {error.details()}", leads_not=True)
    if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        return _Silence(f"no controller answers at {address}: {error.details()}", leads_not=False)
    kind = UnknownNameError if error.code() is grpc.StatusCode.NOT_FOUND else OperationsError
    raise kind(f"controller at {address}: {error.details()}") from error
