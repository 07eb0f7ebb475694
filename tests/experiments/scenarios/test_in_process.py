"""A run's session with an in-process controller, outages, and runs beside a running event loop."""

import asyncio
from functools import partial

from controller.links.link_health import LinkHealth
from experiments.scenarios.connections import open_connections
from experiments.scenarios.in_process import InProcessController, InProcessSession
from experiments.scenarios.outages import Outages
from experiments.scenarios.results import run_object
from experiments.scenarios.simulated import run_on_simulator
from experiments.scenarios.simulated_network import SimulatedNetwork
from policies.enforcement import Enforcement
from policies.policy import decide
from policies.registry import find_policy
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.events import ElementState, ScenarioEvent
from workloads.jobs import training_jobs
from workloads.loading import SHIPPED_SCENARIOS, load_scenario

_SCENARIO = load_scenario(SHIPPED_SCENARIOS / "failing-cable.yaml")
_POLICY = find_policy("crux")


def _session() -> tuple[InProcessSession, Outages]:
    fabric = _SCENARIO.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, _SCENARIO.seed))
    jobs = training_jobs(_SCENARIO, fabric)
    connections = open_connections(jobs, fabric)
    control = _POLICY.rate_control(Enforcement.LEVELS)
    network = SimulatedNetwork(routing, jobs, connections, _POLICY, control, _SCENARIO.steering, may_fail=True)

    def new_controller() -> InProcessController:
        policy = partial(decide, _POLICY)
        links = LinkHealth(fabric, None)
        return InProcessController(routing, connections, policy, _SCENARIO.steering, _SCENARIO.seed, links=links)

    outages = Outages(fabric)
    return InProcessSession(new_controller, jobs, network, outages, {job.name: 1.0 for job in jobs}), outages


def test_it_decides_only_when_jobs_or_dead_links_change() -> None:
    async def scenario() -> None:
        session, outages = _session()
        jobs = [job.name for job in _SCENARIO.jobs]
        cable = next(event for event in _SCENARIO.events if event.link is not None)

        async def number(now_s: float, arrived: list[str], departed: list[str], *, reports_ports: bool = False) -> int:
            return (await session.update(now_s, arrived, departed, reports_ports=reports_ports)).plan_number

        assert await number(0.0, [], [], reports_ports=True) == 0
        assert await session.apply_plan() is None
        assert await number(1.0, jobs, []) == 1
        assert await number(2.0, [], []) == 1
        assert await number(3.0, [], [], reports_ports=True) == 1
        outages.set_element(cable, up=False)
        assert await number(4.0, [], []) == 1, "nobody has told it yet"
        assert await number(4.0, [], [], reports_ports=True) == 2
        assert await number(5.0, [], jobs[:1]) == 3
        plan = await session.apply_plan()
        assert plan is not None
        assert {job.name for job in plan.jobs} == set(jobs[1:])
        await session.crash()
        assert not session.is_open
        await session.restart(6.0)
        assert await number(6.0, [], [], reports_ports=True) == 1, "another controller counts anew"
        plan = await session.apply_plan()
        assert plan is not None
        assert {job.name for job in plan.jobs} == set(jobs[1:])

    asyncio.run(scenario())


def test_overlapping_outages_end_one_by_one() -> None:
    fabric = _SCENARIO.topology.build()
    outages = Outages(fabric)
    link = fabric.links[fabric.nics[fabric.hosts[0]][0].link]
    events = {
        name: ScenarioEvent.model_validate({"at_s": 1.0, **element, "state": ElementState.DOWN})
        for name, element in {
            "cable": {"link": (link.source, link.destination)},
            "host": {"host": link.source},
            "switch": {"switch": link.destination},
        }.items()
    }
    for event in events.values():
        outages.set_element(event, up=False)
    assert link.destination not in outages.port_states
    outages.set_element(events["switch"], up=True)
    assert outages.links == outages.dark_links >= {link.index, fabric.reverse(link.index)}
    assert outages.port_states[link.destination][fabric.links[fabric.reverse(link.index)].source_port] is False
    outages.set_element(events["cable"], up=True)
    assert link.index in outages.links, "its host is down still"
    outages.set_element(events["host"], up=True)
    assert outages.links == frozenset()


def test_a_simulated_run_works_with_and_without_an_event_loop() -> None:
    def run() -> object:
        return run_object(run_on_simulator(_SCENARIO, _POLICY, on_progress=lambda *_: None))

    async def beside() -> object:
        return run()

    assert asyncio.run(beside()) == run()
