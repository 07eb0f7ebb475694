"""Blocking client for jobs without an event loop: the same calls as ``Client``, from any thread.

A daemon thread runs the asynchronous client. Every call has a bounded wait. Where the thread is gone, as after a fork
or at interpreter exit, calls do nothing.
"""

import asyncio
import atexit
import concurrent.futures
import contextlib
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from hostlib import checks
from hostlib.client import Client
from hostlib.credentials import Credentials
from hostlib.errors import RefusalReason, RefusedError
from hostlib.task_graph import TaskGraph
from hostlib.types import Directives, FlowGroup, FlowGroupAssignments, Job, Nic, NicPair, PathLoad, Profile, Sent

_LOG = logging.getLogger(__name__)

_PATIENCE_S = 1.0
"""Wait for calls that the thread answers at once; only an overloaded machine takes longer."""

_CLOSE_S = 3.0

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class BlockingClient:
    """The blocking counterpart of ``Client``; its methods behave like those of ``Client``.

        with BlockingClient("controller:4790") as client:
            client.register_job(job)
            client.register_flow_groups(job.name, flow_groups)

    The client closes itself at interpreter exit unless closed before. In a forked child, calls do nothing and return
    that nothing is known.
    """

    def __init__(
        self, address: str | Sequence[str], owner_token: str | None = None, credentials: Credentials | None = None
    ) -> None:
        self._client = Client(address, owner_token, credentials=credentials)
        self.owner_token = self._client.owner_token
        self._loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._closing = asyncio.Event()
        self._closed = threading.Event()
        self._ready = threading.Event()
        self._failure: RefusedError | None = None
        self._thread = threading.Thread(target=self._serve, name="trainyard", daemon=True)
        self._thread.start()
        self._ready.wait(_PATIENCE_S)
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and end the thread within three seconds. Closing again does nothing."""
        if self._is_alive:
            self._closed.set()
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join(_CLOSE_S)
        atexit.unregister(self.close)

    def register_job(self, job: Job) -> None:
        """See ``Client.register_job``."""
        self._do(self._client.register_job, job)

    def register_flow_groups(
        self, job: str, flow_groups: Sequence[FlowGroup], task_graph: TaskGraph | None = None
    ) -> None:
        """See ``Client.register_flow_groups``."""
        self._do(self._client.register_flow_groups, job, flow_groups, task_graph)

    def start_flow_groups(
        self, job: str, flow_groups: Sequence[str], iteration: int, sent: Mapping[str, Sent] | None = None
    ) -> None:
        """See ``Client.start_flow_groups``."""
        self._do(self._client.start_flow_groups, job, flow_groups, iteration, sent)

    def end_flow_groups(self, job: str, flow_groups: Sequence[str], iteration: int) -> None:
        """See ``Client.end_flow_groups``."""
        self._do(self._client.end_flow_groups, job, flow_groups, iteration)

    def report_profile(self, job: str, profile: Profile, task_graph: TaskGraph | None = None) -> None:
        """See ``Client.report_profile``."""
        self._do(self._client.report_profile, job, profile, task_graph)

    def deregister(self, job: str) -> None:
        """See ``Client.deregister``."""
        self._do(self._client.deregister, job)

    def newest_directives(self, job: str) -> Directives | None:
        """See ``Client.newest_directives``."""
        return self._do(self._client.newest_directives, job)

    def five_tuples(self, job: str) -> FlowGroupAssignments:
        """See ``Client.five_tuples``."""
        return self._do(self._client.five_tuples, job) or {}

    def refusal(self, job: str) -> RefusedError | None:
        """See ``Client.refusal``."""
        return self._failure or self._do(self._client.refusal, job)

    def acknowledged(self, job: str, timeout_s: float) -> bool:
        """See ``Client.acknowledged``."""
        timeout_s = checks.number("timeout_s", timeout_s)
        return bool(self._wait(self._client.acknowledged(job, timeout_s), timeout_s + _PATIENCE_S))

    def locate_nics(self, addresses: Sequence[IPv4Address], timeout_s: float) -> tuple[Nic | None, ...] | None:
        """See ``Client.locate_nics``."""
        timeout_s = checks.number("timeout_s", timeout_s)
        return self._wait(self._client.locate_nics(addresses, timeout_s), timeout_s + _PATIENCE_S)

    def path_loads(self, pairs: Sequence[NicPair], timeout_s: float) -> tuple[PathLoad, ...] | None:
        """See ``Client.path_loads``."""
        timeout_s = checks.number("timeout_s", timeout_s)
        return self._wait(self._client.path_loads(pairs, timeout_s), timeout_s + _PATIENCE_S)

    def directives(self, job: str) -> Iterator[Directives]:
        """See ``Client.directives``. Blocks, so iterate in a thread of its own."""
        stream = self._client.directives(job)
        while (directives := self._wait(_next_of(stream), None)) is not None:
            yield directives

    @property
    def _is_alive(self) -> bool:
        return os.getpid() == self._pid and self._thread.is_alive() and not self._closed.is_set()

    def _serve(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._until_closed())
        except Exception as error:
            _LOG.exception("the thread of the host library failed, and jobs run on without a controller")
            self._failure = RefusedError(
                RefusalReason.FAILED, f"the host library failed: {type(error).__name__}: {error}"
            )
        finally:
            self._ready.set()

    async def _until_closed(self) -> None:
        async with self._client:
            self._ready.set()
            await self._closing.wait()

    def _do(
        self, call: Callable[_Parameters, _Result], *args: _Parameters.args, **kwargs: _Parameters.kwargs
    ) -> _Result | None:
        """Run a call in the thread and return its result; None if it takes too long or the thread is gone.

        A call that takes too long is made all the same: what a job has reported is not lost.
        """

        async def answer() -> _Result:
            return call(*args, **kwargs)

        return self._wait(answer(), _PATIENCE_S, is_patient=False)

    def _wait(
        self, work: Coroutine[Any, Any, _Result], timeout_s: float | None, *, is_patient: bool = True
    ) -> _Result | None:
        """Run work in the thread; return None if it takes too long or the thread is gone.

        Work that takes too long is cancelled where the caller was patient, and goes on where it was not.
        """
        if not self._is_alive:
            work.close()
            return None
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        # Stop with the main thread: the interpreter waits for other threads, possibly this one, before it exits.
        while self._thread.is_alive() and threading.main_thread().is_alive():
            left_s = _PATIENCE_S if end_s is None else min(_PATIENCE_S, end_s - time.monotonic())
            try:
                return future.result(max(0.0, left_s))
            except concurrent.futures.CancelledError:
                return None
            except TimeoutError:
                if end_s is not None and time.monotonic() >= end_s:
                    if not is_patient:
                        future.add_done_callback(_log_late_error)
                        return None
                    break
        future.cancel()
        return None


def _log_late_error(call: "concurrent.futures.Future[Any]") -> None:
    error = None if call.cancelled() else call.exception()
    if error is not None:
        _LOG.error("a call of the host library failed after it had returned: %s", error)


async def _next_of(stream: AsyncIterator[Directives]) -> Directives | None:
    return await anext(stream, None)
