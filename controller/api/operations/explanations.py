"""The explainer of the decision in force, which all callers share."""

import asyncio

from controller.api.operations.explanation import Explainer
from controller.planning.decision import Decision
from topologies.fabric import Fabric

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
