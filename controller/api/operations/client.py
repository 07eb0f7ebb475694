"""A blocking client of the operations service."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.methods import (
    DRAIN,
    EXPLAIN,
    PAUSE,
    PIN,
    RELEASE,
    RELOAD,
    RESUME,
    UNDRAIN,
    UNPIN,
    WITHDRAW,
    Listing,
    StateT,
)
from controller.api.operations.parts import joined
from controller.leadership.leader_gate import NOT_LEADING
from hostlib.addresses import unique_addresses
from hostlib.credentials import Credentials
from hostlib.wire.methods import Method, RequestT, ResponseT

_DEADLINE_S = 30.0
_RELOAD_DEADLINE_S = 300.0
"""A policy that is new is compiled first."""
_TAKE_OVER_S = 15.0
"""How long to wait for another controller to lead, if the lease is of about the usual length."""
_RETRY_S = 0.25
_RECONNECT = (("grpc.initial_reconnect_backoff_ms", 200), ("grpc.max_reconnect_backoff_ms", 2000))
"""An operator who waits for a controller that restarts waits no longer than it needs."""

_AnswerT = TypeVar("_AnswerT")


class OperationsError(Exception):
    """The controller has not answered, or has refused; the message says why."""


class UnknownNameError(OperationsError):
    """The controller has nothing of the name."""


class Operations:
    """A connection to the controller at ``address``, or to whichever of several leads.

    Where none of several leads, a call waits for a while until one does. ``credentials`` tell who calls; None: those
    of the environment. Raises ValueError for an address or credentials that cannot be used.

    Example::

        with Operations("127.0.0.1:4790") as operations:
            jobs = operations.list(LIST_JOBS)
            print(operations.explain("gpt").job.reason)
    """

    def __init__(self, address: str | Sequence[str], credentials: Credentials | None = None) -> None:
        self._credentials = credentials or Credentials.from_environment()
        self._channels = {each: self._credentials.channel(each, _RECONNECT) for each in unique_addresses(address)}
        self._threads = ThreadPoolExecutor(len(self._channels))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for channel in self._channels.values():
            channel.close()  # this ends the calls in progress
        self._threads.shutdown(cancel_futures=True)

    def list(self, listing: Listing[StateT]) -> list[StateT]:
        """List all states of a kind. Raises OperationsError."""

        def states(pages: Iterable[Any]) -> list[StateT]:
            return [state for page in pages for state in page.states]

        return self._ask(listing.method, wire.ListRequest(), states)

    def explain(self, name: str) -> wire.Explanation:
        """Explain a job, or a flow named JOB/GROUP/NUMBER. Raises OperationsError."""
        return self._ask(EXPLAIN, wire.ExplainRequest(name=name), joined)

    def withdraw(self, jobs: Sequence[str]) -> Mapping[str, int]:
        """Withdraw jobs of whatever tenants, all or none; returns how many flow groups each had.

        Raises OperationsError.
        """
        names = tuple(dict.fromkeys(jobs))
        (withdrawal,) = self._ask(WITHDRAW, wire.WithdrawRequest(jobs=names), tuple)
        return dict(zip(names, withdrawal.flow_groups, strict=True))

    def drain(self, target: wire.DrainTarget, *, is_forced: bool = False) -> wire.DrainAnswer:
        """Move all flows off a switch, a cable or a host. Raises OperationsError."""
        (answer,) = self._ask(DRAIN, wire.DrainRequest(target=target, force=is_forced), tuple)
        return answer

    def undrain(self, target: wire.DrainTarget) -> wire.DrainAnswer:
        """Use again what was drained. Raises OperationsError."""
        (answer,) = self._ask(UNDRAIN, target, tuple)
        return answer

    def reload(self) -> wire.ReloadAnswer:
        """Have the controller read its configuration again. Raises OperationsError."""
        (answer,) = self._ask(RELOAD, wire.ReloadRequest(), tuple, _RELOAD_DEADLINE_S)
        return answer

    def pause(self, reason: str = "") -> wire.PauseAnswer:
        """Have no Plan made until ``resume``. Raises OperationsError."""
        (answer,) = self._ask(PAUSE, wire.PauseRequest(reason=reason), tuple)
        return answer

    def release(self, reason: str = "") -> wire.PauseAnswer:
        """The same, and withdraw all rules; base routing stays. Raises OperationsError."""
        (answer,) = self._ask(RELEASE, wire.PauseRequest(reason=reason), tuple)
        return answer

    def resume(self) -> wire.PauseAnswer:
        """Have Plans made again. Raises OperationsError."""
        (answer,) = self._ask(RESUME, wire.ResumeRequest(), tuple)
        return answer

    def pin(self, name: str, for_s: float, level: int | None = None, path: str | None = None) -> wire.PinState:
        """Pin the level of a job, or the path of JOB/GROUP/NUMBER, for a while. Raises OperationsError."""
        (state,) = self._ask(PIN, wire.PinRequest(name=name, level=level, path=path, for_s=for_s), tuple)
        return state

    def unpin(self, name: str) -> None:
        """Have the policy decide again. Raises OperationsError."""
        self._ask(UNPIN, wire.UnpinRequest(name=name), tuple)

    def _ask(
        self,
        method: Method[RequestT, ResponseT],
        request: RequestT,
        join: Callable[[Iterable[ResponseT]], _AnswerT],
        deadline_s: float = _DEADLINE_S,
    ) -> _AnswerT:
        """Ask all at once, and again those that do not lead; the first answer or refusal counts."""

        def ask(channel: grpc.Channel) -> _AnswerT:
            # What has one answer looks like a stream of one.
            call = channel.unary_stream(method.path, method.request.SerializeToString, method.response.FromString)
            return join(call(request, timeout=deadline_s, metadata=self._credentials.metadata()))

        end_s = monotonic() + (_TAKE_OVER_S if len(self._channels) > 1 else 0.0)
        failures: dict[str, _NoAnswer] = {}
        asking = {self._threads.submit(ask, channel): address for address, channel in self._channels.items()}
        while asking:
            answered, _ = wait(asking, return_when=FIRST_COMPLETED)
            for asked in answered:
                address = asking.pop(asked)
                try:
                    return asked.result()
                except grpc.RpcError as error:
                    failures[address] = _no_answer(address, error)
            if monotonic() < end_s and (idle := [name for name, failure in failures.items() if failure.is_standby]):
                sleep(_RETRY_S)
                for address in set(idle) - set(asking.values()):
                    asking[self._threads.submit(ask, self._channels[address])] = address
        raise OperationsError("; ".join(failures[address].reason for address in self._channels))


@dataclass(frozen=True, slots=True)
class _NoAnswer:
    """The reason why a controller has not answered; ``is_standby``: it says that it does not lead."""

    reason: str
    is_standby: bool


def _no_answer(address: str, error: grpc.RpcError) -> _NoAnswer:
    """The reason in an error of gRPC; raises OperationsError where the controller has refused."""
    assert isinstance(error, grpc.Call)
    if error.code() is grpc.StatusCode.UNAVAILABLE and error.details().startswith(NOT_LEADING):
        return _NoAnswer(f"{address}: {error.details()}", is_standby=True)
    if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        return _NoAnswer(f"no controller answers at {address}: {error.details()}", is_standby=False)
    kind = UnknownNameError if error.code() is grpc.StatusCode.NOT_FOUND else OperationsError
    raise kind(f"controller at {address}: {error.details()}") from error
