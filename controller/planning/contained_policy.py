"""A live policy, run so that nothing it does stops the controller: it raises, takes too long, or returns no valid Plan.

A thread cannot be killed. A call that exceeds its time limit is abandoned: its result is dropped, its daemon thread
does not keep the process from ending, and the next decision does not wait for it. While ``MAX_ABANDONED`` such calls
still run, the policy is not called again, so that a policy that always hangs takes a bounded number of threads.
"""

import asyncio
import gc
import logging
from collections.abc import Callable

from controller.background import PLANNING_NICENESS, run_in_thread
from controller.events import BurstLog, EventKind
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
        self._calls: list[_Call] = []
        self._log = BurstLog(_LOG, logging.ERROR)

    async def decide(self, snapshot: Snapshot) -> Plan | None:
        """The policy's Plan; None where it has made none, which is counted and logged."""
        try:
            plan = await self._call(snapshot)
        except _NoPlanError as error:
            self.num_failures += 1
            self.problem = str(error)
            words = "policy %s has made no plan: %s; the plan before it stays in force"
            self._log.tell(EventKind.PLAN_FAILED, words, self.name, error, policy=self.name, problem=self.problem)
            return None
        self.problem = ""
        return plan

    async def _call(self, snapshot: Snapshot) -> Plan:
        self._calls = [call for call in self._calls if call.is_running]
        if len(self._calls) >= MAX_ABANDONED:
            raise _NoPlanError(f"{len(self._calls)} calls that were abandoned are still running")
        call = _Call(self._decide, snapshot)
        self._calls.append(call)
        try:
            async with asyncio.timeout(self._time_limit_s):
                # Not cancelled at the limit: a call that has not begun yet counts as running until it has ended.
                await asyncio.shield(run_in_thread(call, f"policy {self.name}", PLANNING_NICENESS))
        except TimeoutError:
            # A decision runs with the garbage collector off, and this one may never turn it on again.
            gc.enable()
            raise _NoPlanError(f"it has taken longer than {self._time_limit_s:g} s") from None
        if call.plan is None:
            _LOG.debug("policy %s", self.name, exc_info=call.error)
            raise _NoPlanError(f"{type(call.error).__name__}: {call.error}")
        return call.plan


class _Call:
    """One call of a policy, which raises nothing; ``plan`` or ``error`` is what came of it."""

    def __init__(self, decide: Callable[[Snapshot], Plan], snapshot: Snapshot) -> None:
        self.plan: Plan | None = None
        self.error: BaseException | None = None
        self.is_running = True
        self._decide = decide
        self._snapshot = snapshot

    def __call__(self) -> None:
        try:
            self.plan = self._decide(self._snapshot)
        except BaseException as error:  # whatever code of others raises, SystemExit too
            self.error = error
        finally:
            self.is_running = False
