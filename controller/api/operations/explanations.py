"""The explainer of the decision in force, which all callers share."""

import asyncio
from collections.abc import Callable
from functools import partial

from controller.api.context import ServiceContext
from controller.api.errors import NothingPlannedError, NothingToExplainError
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.explanation import Explainer, find_flow
from controller.api.operations.intervention_calls import intervening_of, pause_state, pin_state
from controller.api.operations.states import profile_state
from controller.planning.decision import Decision
from topologies.fabric import Fabric
from topologies.printable import quoted

_KEPT_S = 30.0
"""An explainer keeps its decision in memory: so long after it was last asked for, if that is not in force any more."""


class Explanations:
    """Makes one explainer for a decision, in a thread, however many ask for it at once."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._making: tuple[Decision, asyncio.Task[Explainer]] | None = None
        self._forgetting: asyncio.TimerHandle | None = None

    async def of(self, decision: Decision) -> Explainer:
        """The explainer of a decision."""
        if self._making is None or self._making[0] is not decision:
            making = asyncio.create_task(asyncio.to_thread(Explainer, decision, self._fabric))
            self._making = decision, making
        self._forget_later()
        return await asyncio.shield(self._making[1])

    def _forget_later(self) -> None:
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._forgetting = asyncio.get_running_loop().call_later(_KEPT_S, self._forget)

    def _forget(self) -> None:
        self._making = self._forgetting = None


def decision_about(name: str, context: ServiceContext) -> Decision:
    """The decision in force, to explain a job or a flow by.

    Raises NothingPlannedError where there is none yet, and NothingToExplainError where it will not have the job.
    """
    decision = context.planner.decision
    if decision is not None:
        return decision
    if context.registry.job(job := name.partition("/")[0]) is None:
        raise NothingToExplainError(f"no job {quoted(job)} is registered, and nothing has been planned yet")
    raise NothingPlannedError("nothing has been planned yet")


def explanation_of(name: str, explainer: Explainer, context: ServiceContext) -> Callable[[], wire.Explanation]:
    """What makes the explanation of a job or a flow, in any thread, from the state of now.

    It raises NothingToExplainError where the Plan has nothing of the name.
    """
    registry, now_s = context.registry, context.clock.now_s()
    by_hand = _by_hand(name, context, now_s)
    job = registry.job(name) if explainer.has_job(name) else None
    if job is None:
        return lambda: _with(by_hand, explainer.explain_flow(find_flow(explainer.decision, name), now_s))
    lease_s = max(0.0, registry.lease_end_s(name) - now_s)
    profile = profile_state(job, context.profiling, now_s)
    explain = partial(explainer.explain_job, job, lease_s, profile, registry.sent_reasons(name), now_s)
    return lambda: _with(by_hand, explain())


def _by_hand(name: str, context: ServiceContext, now_s: float) -> wire.Explanation:
    """What operators have decided that bears on a job or a flow, beside the pins that hold."""
    intervening = intervening_of(context)
    pause, pin = intervening.pause_state, intervening.pin_state(name)
    return wire.Explanation(
        pause=None if pause is None else pause_state(pause, now_s),
        idle_pin=None if pin is None or not pin.problem else pin_state(pin, now_s),
    )


def _with(by_hand: wire.Explanation, explanation: wire.Explanation) -> wire.Explanation:
    explanation.MergeFrom(by_hand)
    return explanation
