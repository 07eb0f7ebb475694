"""Admits calls, reads their requests, and answers errors with their statuses: the same for every method.

Who calls is known before a byte of the request is read, so that strangers cost next to nothing. A request has to come
within ``READ_LIMIT_S`` seconds.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, Protocol

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from controller.access.authenticator import Anybody, Authenticator
from controller.access.budget import Budget
from controller.access.connections import ConnectionLimitError, ConnectionTable
from controller.access.credentials import credentials_of_call
from controller.access.errors import ForbiddenError, UnauthenticatedError
from controller.access.identity import Identity, Role
from controller.access.options import UNLIMITED, Quotas
from controller.access.refusal_log import RefusalLog
from controller.api.errors import BusyError, NothingPlannedError, NothingToExplainError
from controller.api.rate_limiter import RateLimiter, RateLimitError
from controller.links.drains import CutOffError, UnknownDrainError
from controller.metrics import CALLS, TENANTS
from controller.planning.pin_requests import UnfitPinError, UnknownPinError
from controller.registry.attendance import Attendance
from controller.registry.errors import (
    CommitError,
    ConflictError,
    ExhaustedError,
    InvalidFieldError,
    NotOwnerError,
    UnknownJobError,
)
from hostlib.wire.methods import Method, RequestT, ResponseT
from topologies.printable import printable

_LOG = logging.getLogger(__name__)

READ_LIMIT_S = 30.0
TAKE_LIMIT_S = 60.0
"""How long a client may take for one message of an answer."""
CHECKED_EVERY_S = 30.0
"""How often the caller of a stream has to be valid still."""
FAILED_IDENTITY_UNITS = 10.0
"""What a call without a valid identity costs whoever makes it, by network address."""
_MOST_DETAILS = 1_000
"""Characters of a refusal: clients accept some 8 KiB with all headers."""
_RECORDED_AT_ONCE = 100
"""Refusals of one caller in the audit trail; further ones are recorded once a second."""

_STATUS_OF: dict[type[Exception], grpc.StatusCode] = {
    UnauthenticatedError: grpc.StatusCode.UNAUTHENTICATED,
    ForbiddenError: grpc.StatusCode.PERMISSION_DENIED,
    InvalidFieldError: grpc.StatusCode.INVALID_ARGUMENT,
    UnknownJobError: grpc.StatusCode.NOT_FOUND,
    ConflictError: grpc.StatusCode.ALREADY_EXISTS,
    NotOwnerError: grpc.StatusCode.PERMISSION_DENIED,
    ExhaustedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RateLimitError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ConnectionLimitError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    BusyError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    CommitError: grpc.StatusCode.INTERNAL,
    NothingPlannedError: grpc.StatusCode.FAILED_PRECONDITION,
    NothingToExplainError: grpc.StatusCode.NOT_FOUND,
    UnknownDrainError: grpc.StatusCode.NOT_FOUND,
    CutOffError: grpc.StatusCode.FAILED_PRECONDITION,
    UnknownPinError: grpc.StatusCode.NOT_FOUND,
    UnfitPinError: grpc.StatusCode.FAILED_PRECONDITION,
}

_Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a call; ``account`` is what its requests are counted under."""

    identity: Identity
    account: str


class CallRecorder(Protocol):
    """Records calls in the audit trail."""

    def __call__(self, caller: Identity, method: str, subject: str, outcome: str, problem: str) -> None:
        """Record a call about ``subject``, mostly a job."""


class Calls:
    """The calls of one controller, over all its services.

    Args:
        authenticator: Tells who calls; by default everybody is the same unknown identity.
        quotas: What an identity may do, by tenant.
        record: Records calls; None: there is no audit trail.

    Attributes:
        refusals: How many calls were refused, by tenant (empty for all without one) and gRPC status.
        attendance: Is told of calls whose requests have come, until they are answered; None: nobody wants to know.
    """

    def __init__(
        self,
        authenticator: Authenticator | None = None,
        quotas: Callable[[str], Quotas] = lambda _: UNLIMITED,
        record: CallRecorder | None = None,
    ) -> None:
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.rate_limiter = RateLimiter()
        self.attendance: Attendance | None = None
        self.authenticator = authenticator or Anybody()
        self._quotas = quotas
        self.record = record
        self._connections = ConnectionTable(_now_s)
        self._refusal_log = RefusalLog(_now_s)
        self._recorded_refusals = Budget(_RECORDED_AT_ONCE, 1.0, _now_s)

    def unary(
        self,
        method: Method[RequestT, ResponseT],
        roles: Collection[Role],
        answer: Callable[[RequestT, Caller], Awaitable[ResponseT]],
        *,
        subject: Callable[[RequestT], str] | None = None,
    ) -> "grpc.RpcMethodHandler[bytes, ResponseT]":
        """A handler of a method for callers in one of these roles.

        Args:
            method: The method.
            roles: Who may call it.
            answer: Makes the answer.
            subject: What a request is about; calls of a method that has one stand in the audit trail, unless a viewer
                makes them.
        """

        async def handle(requests: AsyncIterator[bytes], context: _Context) -> ResponseT | None:
            call = _Call(method, roles, subject)
            async with self._refusals(call, context.peer()):
                async with self._admitted(call, requests, context):
                    response = await answer(call.known_request, call.known_caller)
                self._record_call(call)
                return response
            return await call.refuse(context)

        # A handler of a stream is called before its request has been read.
        return grpc.stream_unary_rpc_method_handler(handle, None, method.response.SerializeToString)

    def streaming(
        self,
        method: Method[RequestT, ResponseT],
        roles: Collection[Role],
        answer: Callable[[RequestT, Caller], AsyncIterator[ResponseT]],
        *,
        subject: Callable[[RequestT], str] | None = None,
    ) -> "grpc.RpcMethodHandler[bytes, ResponseT]":
        """The same for an answer in several messages; each waits until the client has taken the one before."""

        async def handle(requests: AsyncIterator[bytes], context: _Context) -> AsyncIterator[ResponseT]:
            call = _Call(method, roles, subject)
            async with self._refusals(call, context.peer()), self._admitted(call, requests, context):
                self._record_call(call)
                responses = answer(call.known_request, call.known_caller)
                async for response in self._while_valid(responses, call, context):
                    with _taken_in_time():
                        yield response
                return
            await call.refuse(context)

        return grpc.stream_stream_rpc_method_handler(handle, None, method.response.SerializeToString)

    async def charge(self, caller: Caller, size_bytes: int) -> None:
        """Wait until the caller may receive another answer of this size. Raises RateLimitError."""
        await self.rate_limiter.charge(caller.account, size_bytes)

    @asynccontextmanager
    async def _admitted(
        self, call: "_Call[RequestT, ResponseT]", requests: AsyncIterator[bytes], context: _Context
    ) -> AsyncIterator[None]:
        """Identify the caller, and read the request, which counts as held until it is answered.

        Raises the errors of a refusal.
        """
        peer = context.peer()
        try:
            identity = self.authenticator.identify(credentials_of_call(context))
        except UnauthenticatedError:
            await self.rate_limiter.spend(_address_of(peer), FAILED_IDENTITY_UNITS)
            raise
        call.caller = caller = Caller(identity, f"{identity.tenant}/{identity.name}" if identity.is_known else peer)
        if identity.roles.isdisjoint(call.roles):
            hint = "" if identity.is_known else "; configure identities, or agents: true (docs/security.md)"
            raise ForbiddenError(f"{call.method.name}: is for {' and '.join(call.roles)}, not for {identity}{hint}")
        with ExitStack() as stack:
            if identity.is_known:
                quotas = self._quotas(identity.tenant)
                self.rate_limiter.set_rate(caller.account, quotas.requests_per_s)
                stack.enter_context(self._connections.call(caller.account, peer, quotas.connections))
            octets = await self._read(requests, caller.account)
            async with AsyncExitStack() as held:
                with nullcontext() if self.attendance is None else self.attendance.call():
                    await held.enter_async_context(self.rate_limiter.admitted(caller.account, len(octets)))
                    try:
                        call.request = call.method.request.FromString(octets)
                    except DecodeError:
                        raise InvalidFieldError(
                            f"request: cannot be read as {call.method.request.DESCRIPTOR.full_name}"
                        ) from None
                yield

    async def _read(self, requests: AsyncIterator[bytes], account: str) -> bytes:
        """Read the request of a call. Raises InvalidFieldError."""
        try:
            async with asyncio.timeout(READ_LIMIT_S), self.rate_limiter.reading(account):
                return await anext(requests)
        except TimeoutError:
            raise InvalidFieldError(f"request: has not come within {READ_LIMIT_S:g} s") from None
        except StopAsyncIteration:
            raise InvalidFieldError("request: there is none") from None

    async def _while_valid(
        self, responses: AsyncIterator[ResponseT], call: "_Call[Any, ResponseT]", context: _Context
    ) -> AsyncIterator[ResponseT]:
        """The same responses, while the caller is still who it was when the call began. Raises UnauthenticatedError."""
        coming: asyncio.Future[ResponseT | None] | None = None
        try:
            while True:
                coming = asyncio.ensure_future(_next(responses))
                while not (await asyncio.wait({coming}, timeout=CHECKED_EVERY_S))[0]:
                    if self.authenticator.identify(credentials_of_call(context)) != call.known_caller.identity:
                        raise UnauthenticatedError("the caller is somebody else by now")
                response = coming.result()
                if response is None:
                    return
                yield response
        finally:
            if coming is not None:
                coming.cancel()

    @asynccontextmanager
    async def _refusals(self, call: "_Call[Any, Any]", peer: str) -> AsyncIterator[None]:
        """Have the call refused for errors, with their statuses; count and record that."""
        try:
            yield
            self._count(call, "OK")
            return
        except (asyncio.CancelledError, GeneratorExit):
            self._count(call, "CANCELLED")  # the client has gone
            raise
        except tuple(_STATUS_OF) as error:
            status, problem = _STATUS_OF[type(error)], str(error)
            is_stranger = isinstance(error, UnauthenticatedError | ForbiddenError)
        except Exception:
            status, problem = grpc.StatusCode.INTERNAL, "the controller failed; its log says why"
            is_stranger = False
            _LOG.exception("%s has failed", call.method.name)
        self.refusals[call.tenant, status.name] += 1
        self._count(call, status.name)
        self._record_call(call, problem)
        if is_stranger:
            self._refusal_log.tell(call.method.name, peer, _address_of(peer), problem)
        call.refusal = status, printable(problem, _MOST_DETAILS)

    def _count(self, call: "_Call[Any, Any]", status: str) -> None:
        CALLS.labels("grpc", TENANTS.of(call.tenant), status).inc()

    def _record_call(self, call: "_Call[Any, Any]", problem: str = "") -> None:
        if self.record is None or call.subject is None or call.caller is None:
            return
        if not call.caller.identity.is_known or call.caller.identity.roles == {Role.VIEWER}:
            return
        if problem:
            left_out = self._recorded_refusals.take(call.caller.account)
            if left_out is None:
                return
            problem += f" (and {left_out:,} more refusals of this caller)" if left_out else ""
        subject = "" if call.request is None else call.subject(call.request)
        self.record(call.caller.identity, call.method.name, subject, "refused" if problem else "done", problem)


class _Call(Generic[RequestT, ResponseT]):
    """A call as far as it is known."""

    def __init__(
        self,
        method: Method[RequestT, ResponseT],
        roles: Collection[Role],
        subject: Callable[[RequestT], str] | None,
    ) -> None:
        self.method = method
        self.roles = roles
        self.subject = subject
        self.caller: Caller | None = None
        self.request: RequestT | None = None
        self.refusal: tuple[grpc.StatusCode, str] | None = None

    async def refuse(self, context: _Context) -> None:
        """End the call with its refusal.

        To be called once the error is over: gRPC keeps what is raised here, and whatever that refers to, in a cycle.
        """
        assert self.refusal is not None
        self.request = None
        await context.abort(*self.refusal)

    @property
    def tenant(self) -> str:
        """The caller's tenant; empty where there is none, or the caller is not known."""
        return "" if self.caller is None else self.caller.identity.tenant

    @property
    def known_caller(self) -> Caller:
        """The caller, once the call is admitted."""
        assert self.caller is not None
        return self.caller

    @property
    def known_request(self) -> RequestT:
        """The request, once the call is admitted."""
        assert self.request is not None
        return self.request


async def _next(responses: AsyncIterator[ResponseT]) -> ResponseT | None:
    return await anext(responses, None)


@contextmanager
def _taken_in_time() -> Iterator[None]:
    """End the call of this task where the client does not take a message in time: it keeps what is left in memory."""
    task = asyncio.current_task()
    assert task is not None
    timer = asyncio.get_running_loop().call_later(TAKE_LIMIT_S, task.cancel)
    try:
        yield
    finally:
        timer.cancel()


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _address_of(peer: str) -> str:
    """The network address in gRPC's name of a connection, without the port."""
    return peer.rpartition(":")[0]
