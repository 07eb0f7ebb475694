"""Has telemetry probe for the flows of the Plan in force."""

import asyncio
from dataclasses import dataclass

from controller.background import in_slices
from controller.planning.decision import Decision
from controller.telemetry.planned_loads import PlannedLoads
from controller.telemetry.exchange import PairKey
from controller.telemetry.telemetry import Telemetry, ports_by_pair

_PAIRS_AT_ONCE = 100


class ProbeTargets:
    """The probe targets of the newest decision, which take long to set: one caller does, and all others wait."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._set_for: Decision | None = None
        self._setting = asyncio.Lock()

    async def follow(self, decision: Decision | None) -> None:
        """Have telemetry probe for the flows of a decision, unless it does; None: as before."""
        if decision is None or decision is self._set_for:
            return
        async with self._setting:
            if decision is self._set_for:
                return
            targets = await asyncio.to_thread(_Targets.of, decision)
            await in_slices(self._telemetry.setting_probe_targets(targets.ports), _PAIRS_AT_ONCE)
            self._telemetry.foreign_loads.set_expected(targets.loads)
            self._set_for = decision


@dataclass(frozen=True, slots=True, eq=False)
class _Targets:
    """What follows from a decision alone: the ports to probe with by pair, and the loads to expect."""

    ports: dict[PairKey, set[int]]
    loads: PlannedLoads

    @classmethod
    def of(cls, decision: Decision) -> "_Targets":
        flows = (flow.five_tuple for job in decision.snapshot.jobs for flow in job.registered_flows)
        return cls(ports_by_pair(flows), PlannedLoads.of(decision.snapshot, decision.plan))
