"""Admits calls, reads their requests, and answers errors with their statuses: the same for every method.

Who calls is known before a byte of the request is read, so that strangers cost next to nothing. A request has to come
within ``READ_LIMIT_S`` seconds.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, Protocol

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from controller.access.authenticator import Anybody, Authenticator
from controller.access.connections import ConnectionLimitError, ConnectionTable
from controller.access.errors import ForbiddenError, UnauthenticatedError
from controller.access.identity import Identity, Role
from controller.access.options import UNLIMITED, Quotas
from controller.api.errors import BusyError, NothingPlannedError, NothingToExplainError
from controller.api.rate_limiter import RateLimiter, RateLimitError
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
_FAILED_IDENTITY_UNITS = 10.0
"""What a call without a valid identity costs whoever makes it, by network address."""
_MOST_DETAILS = 1_000
"""Characters of a refusal: clients accept some 8 KiB with all headers."""
_LOGGED_EVERY_S = 10.0

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
        self._connections = ConnectionTable(lambda: asyncio.get_running_loop().time())
        self._logged_s: dict[str, float] = {}

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
            async with self._refusals(call, context):
                request = await self._admit(call, requests, context)
                response = await answer(request, call.known_caller)
                self._record_call(call)
                return response
            return None

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
            async with self._refusals(call, context):
                request = await self._admit(call, requests, context)
                self._record_call(call)
                async for response in answer(request, call.known_caller):
                    yield response

        return grpc.stream_stream_rpc_method_handler(handle, None, method.response.SerializeToString)

    async def charge(self, caller: Caller, size_bytes: int) -> None:
        """Wait until the caller may receive another answer of this size. Raises RateLimitError."""
        await self.rate_limiter.charge(caller.account, size_bytes)

    async def _admit(
        self, call: "_Call[RequestT, ResponseT]", requests: AsyncIterator[bytes], context: _Context
    ) -> RequestT:
        """Identify the caller, and read the request. Raises the errors of a refusal."""
        peer = context.peer()
        try:
            identity = self.authenticator.identify(context)
        except UnauthenticatedError:
            await self.rate_limiter.spend(_address_of(peer), _FAILED_IDENTITY_UNITS)
            raise
        call.caller = Caller(identity, f"{identity.tenant}/{identity.name}" if identity.is_known else peer)
        if identity.roles.isdisjoint(call.roles):
            raise ForbiddenError(f"{call.method.name}: is for {' and '.join(call.roles)}, not for {identity}")
        if identity.is_known:
            quotas = self._quotas(identity.tenant)
            self.rate_limiter.set_rate(call.caller.account, quotas.requests_per_s)
            self._connections.note(call.caller.account, peer, quotas.connections)
        octets = await _read(requests)
        with nullcontext() if self.attendance is None else self.attendance.call():
            async with self.rate_limiter.admitted(call.caller.account, len(octets)):
                try:
                    call.request = request = call.method.request.FromString(octets)
                except DecodeError:
                    raise InvalidFieldError(
                        f"request: cannot be read as {call.method.request.DESCRIPTOR.full_name}"
                    ) from None
        return request

    @asynccontextmanager
    async def _refusals(self, call: "_Call[Any, Any]", context: _Context) -> AsyncIterator[None]:
        """Answer errors with their statuses, count and record them."""
        try:
            yield
            return
        except tuple(_STATUS_OF) as error:
            status, problem = _STATUS_OF[type(error)], str(error)
        except grpc.aio.AbortError:
            raise
        except Exception:
            status, problem = grpc.StatusCode.INTERNAL, "the controller failed; its log says why"
            _LOG.exception("%s has failed", call.method.name)
        tenant = "" if call.caller is None else call.caller.identity.tenant
        self.refusals[tenant, status.name] += 1
        self._record_call(call, problem)
        if call.caller is None or status is grpc.StatusCode.PERMISSION_DENIED:
            self._log_refusal(call, context.peer(), problem)
        await context.abort(status, printable(problem, _MOST_DETAILS))

    def _record_call(self, call: "_Call[Any, Any]", problem: str = "") -> None:
        if self.record is None or call.subject is None or call.caller is None:
            return
        if not call.caller.identity.is_known or call.caller.identity.roles == {Role.VIEWER}:
            return
        subject = "" if call.request is None else call.subject(call.request)
        self.record(call.caller.identity, call.method.name, subject, "refused" if problem else "done", problem)

    def _log_refusal(self, call: "_Call[Any, Any]", peer: str, problem: str) -> None:
        """Log a refusal to a stranger, or for a wrong role: at most one line every ten seconds for an address."""
        now_s, address = asyncio.get_running_loop().time(), _address_of(peer)
        if now_s - self._logged_s.get(address, -_LOGGED_EVERY_S) < _LOGGED_EVERY_S:
            return
        if len(self._logged_s) > 1_000:
            self._logged_s.clear()
        self._logged_s[address] = now_s
        _LOG.warning("%s from %s refused: %s", call.method.name, peer, printable(problem))


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

    @property
    def known_caller(self) -> Caller:
        """The caller, once the call is admitted."""
        assert self.caller is not None
        return self.caller


async def _read(requests: AsyncIterator[bytes]) -> bytes:
    """Read the request of a call. Raises InvalidFieldError."""
    try:
        async with asyncio.timeout(READ_LIMIT_S):
            return await anext(requests)
    except TimeoutError:
        raise InvalidFieldError(f"request: has not come within {READ_LIMIT_S:g} s") from None
    except StopAsyncIteration:
        raise InvalidFieldError("request: there is none") from None


def _address_of(peer: str) -> str:
    """The network address in gRPC's name of a connection, without the port."""
    return peer.rpartition(":")[0]
