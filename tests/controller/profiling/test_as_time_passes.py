"""A controller measures as time passes, without anybody who drives its clock."""

import asyncio
from collections.abc import Collection, Mapping

from controller.clock import WallClock
from controller.config import ControllerConfig
from controller.process.core import ControllerCore
from controller.registry.requests import JobRequest
from controller.rules.job_rules import JobRule
from controller.southbound.recording import RecordingSouthbound
from controller.switch_addresses import SwitchAddress
from tests.patience import PATIENCE_S
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import ClosSpecification

_TOPOLOGY = ClosSpecification(kind="clos", tors=2, aggs=1, hosts_per_tor=1, host_link_gbps=100, uplink_gbps=100)

_NUM_LEVELS = 5


class _Readings:
    """Counters that stand still; ``read`` is set once they have been read a few times."""

    def __init__(self) -> None:
        self.read = asyncio.Event()
        self._times = 0

    async def job_bytes(self, switches: Collection[str]) -> Mapping[tuple[int, str], int] | None:
        assert switches == {"t0", "t1"}
        self._times += 1
        if self._times == 3:
            self.read.set()
        return {}

    async def level_bytes(self, level: int) -> Mapping[int, int] | None:
        assert level == _NUM_LEVELS - 1
        return {}


async def _written() -> list[JobRule]:
    """Rules of the Plan in force while the counters of a job that tells its hosts alone are read."""
    fabric = _TOPOLOGY.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, seed=1))
    switches = tuple(SwitchAddress(name=name, address="127.0.0.1:1") for name in fabric.switches)
    southbound, readings = RecordingSouthbound(fabric.switches), _Readings()
    config = ControllerConfig(topology=_TOPOLOGY, switches=switches, num_levels=_NUM_LEVELS)
    clock = WallClock()
    controller = ControllerCore(config, routing, southbound, clock, counters=readings)
    controller.registry.register_job(JobRequest("quiet", ("h0", "h1"), 2, None), clock.now_s())
    works = [asyncio.create_task(controller.planner.run()), asyncio.create_task(controller.measure())]
    async with asyncio.timeout(PATIENCE_S):
        await readings.read.wait()
    for work in works:
        work.cancel()
    return [rule for rules in southbound.written[-1].values() for rule in rules if isinstance(rule, JobRule)]


def test_a_job_is_measured_once_it_has_the_level_for_itself() -> None:
    rules = asyncio.run(_written())
    assert {(rule.switch, rule.destination_host, rule.level) for rule in rules} == {("t0", "h1", 4), ("t1", "h0", 4)}
