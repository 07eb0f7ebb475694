"""A live policy, run so that nothing it does stops the controller: it raises, takes too long, or returns no valid Plan.

A thread cannot be killed. A call that exceeds its time limit is abandoned: its result is dropped, its daemon thread
does not keep the process from ending, and the next decision does not wait for it. While ``MAX_ABANDONED`` such calls
still run, the policy is not called again, so that a policy that always hangs takes a bounded number of threads.
"""

import asyncio
import gc
import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from policies.plan import Plan
from policies.snapshot import Snapshot

_LOG = logging.getLogger(__name__)

MAX_ABANDONED = 3


class _NoPlanError(Exception):
    """The policy has made no Plan; the message says why."""


class ContainedPolicy:
    """Calls ``decide`` in a thread of its own for at most ``time_limit_s`` seconds (None: without a limit).

    ``num_failures`` counts the decisions that have failed; ``problem`` says why the last one did, and is empty once the
    policy has made a Plan again.
    """

    def __init__(self, name: str, decide: Callable[[Snapshot], Plan], time_limit_s: float | None) -> None:
        self.name = name
        self.num_failures = 0
        self.problem = ""
        self._decide = decide
        self._time_limit_s = time_limit_s
        self._threads: set[Thread] = set()

    async def decide(self, snapshot: Snapshot) -> Plan | None:
        """The policy's Plan; None where it has made none, which is counted and logged."""
        try:
            plan = await self._call(snapshot)
        except _NoPlanError as error:
            self.num_failures += 1
            self.problem = str(error)
            _LOG.error("policy %s has made no plan: %s; the plan before it stays in force", self.name, error)
            return None
        self.problem = ""
        return plan

    async def _call(self, snapshot: Snapshot) -> Plan:
        self._threads = {thread for thread in self._threads if thread.is_alive()}
        if len(self._threads) >= MAX_ABANDONED:
            raise _NoPlanError(f"{len(self._threads)} calls that were abandoned are still running")
        loop = asyncio.get_running_loop()
        decided: asyncio.Future[Plan] = loop.create_future()

        def tell(plan: Plan | None, error: BaseException | None) -> None:
            if decided.done():
                return
            if plan is not None:
                decided.set_result(plan)
            else:
                _LOG.debug("policy %s", self.name, exc_info=error)
                decided.set_exception(_NoPlanError(f"{type(error).__name__}: {error}"))

        def call() -> None:
            plan, error = None, None
            try:
                plan = self._decide(snapshot)
            except BaseException as raised:  # whatever code of others raises, SystemExit too
                error = raised
            with suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(tell, plan, error)

        thread = Thread(target=call, name=f"policy {self.name}", daemon=True)
        self._threads.add(thread)
        thread.start()
        try:
            async with asyncio.timeout(self._time_limit_s):
                return await decided
        except TimeoutError:
            # A decision runs with the garbage collector off, and this one may never turn it on again.
            gc.enable()
            raise _NoPlanError(f"it has taken longer than {self._time_limit_s:g} s") from None
