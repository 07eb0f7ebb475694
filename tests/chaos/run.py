"""A run of chaos: events, with regular pauses in which the world is healed and checked."""

import asyncio
import gc
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from controller.links.damping import Damping
from controller.links.link_health import LONGEST_UNTRIED_S, PROBATION_S, LinkHealth
from controller.process.core import ControllerCore
from controller.southbound.southbound import SouthboundError
from policies.jit import Kernel
from tests.chaos import oracles
from tests.chaos.fate import Fate
from tests.chaos.jobs import LoopClock
from tests.chaos.ledger import lost_registrations
from tests.chaos.oracles import Footprint
from tests.chaos.processes import Process
from tests.chaos.switches import Switches, emulated_fabric
from tests.chaos.virtual_loop import VirtualLoop
from tests.chaos.world import LEASE_S, TOPOLOGY, World, traffic_of_a_fabric
from topologies.steering import Steering

_EVENTS_PER_PAUSE = 250
_EVENTS_PER_COLLECTION = 25
_PATIENCE_S = 60.0
_TOLD_S = 1.0
"""In which jobs hear what was planned."""
_PROBED_S = 10.0
"""In which probes find most paths, and that others are there no longer; all of them in three times that."""
_MOST_PROBED = 3
_TRIED_S = Damping().longest_hold_s + LONGEST_UNTRIED_S + PROBATION_S
"""In which a mended link by which probes had ceased to come is held no longer, is tried, and is heard."""
_DECIDERS = (
    ("crux", Steering.RULE),
    ("trainyard", Steering.RULE),
    ("echelonflow", Steering.RULE),
    ("crux", Steering.SOURCE_PORT),
)


class ChaosError(AssertionError):
    """An oracle found a violation; the message says how to repeat it."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run; runs with the same seed have the same digest."""

    digest: str
    num_messages: int
    num_arrived: int
    virtual_s: float
    footprints: tuple[Footprint, ...]


def play(seed: int, num_events: int, on_pause: Callable[[int], None] = lambda _: None) -> Outcome:
    """Run so many events in a new world. Raises ChaosError where an oracle finds a violation."""
    Kernel.compile_all()
    traffic = traffic_of_a_fabric()
    draws = Random(f"{seed}: loop")

    def loop() -> asyncio.AbstractEventLoop:
        return VirtualLoop(traffic.fabric, draws, traffic.arrive, traffic.nics.arrive)

    async def run() -> Outcome:
        policy, steering = _DECIDERS[seed % len(_DECIDERS)]
        with a_folder() as folder:
            world = World(traffic, Random(f"{seed}: world"), policy, steering, folder / "controller.db")
            with world.entered():
                return await Run(world, seed).to_the_end(num_events, on_pause)

    with garbage_waits(), asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(run())


@contextmanager
def a_folder() -> Iterator[Path]:
    """Yield a folder in memory where there is one: power failures are not tested."""
    in_memory = Path("/dev/shm")
    with TemporaryDirectory(prefix="trainyard-", dir=in_memory if in_memory.is_dir() else None) as folder:
        yield Path(folder)


@contextmanager
def garbage_waits() -> Iterator[None]:
    """Collect garbage only where a run says so, so that finalizers run at the same moment in every run."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


class Run:
    """A world with its events and its oracles."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._seed = seed
        self._fate = Fate(world, Random(f"{seed}: fate"))
        self._reference = Switches(emulated_fabric(TOPOLOGY.build()), world.network, "reference-")
        self._judge = Process("judge")
        self._footprints: list[Footprint] = []

    async def to_the_end(self, num_events: int, on_pause: Callable[[int], None]) -> Outcome:
        world = self._world
        world.start_controller()
        world.start_agents()
        for number in range(1, num_events + 1):
            with self._explaining_failures(number):
                await self._fate.happen()
                self._fail_if(number, world.network.failures)
                if number % _EVENTS_PER_COLLECTION == 0:
                    gc.collect()
                if number % _EVENTS_PER_PAUSE == 0 or number == num_events:
                    self._fail_if(number, await self._judge.spawn(self._judged()))
                    on_pause(number)
        self._fail_if(num_events, self._decided_otherwise() + oracles.grown(self._footprints))
        return Outcome(
            world.network.digest,
            world.network.boundaries,
            world.traffic.num_arrived,
            asyncio.get_running_loop().time(),
            tuple(self._footprints),
        )

    async def _judged(self) -> list[str]:
        """Check the world as it is, then check it again after everything is healed."""
        world = self._world
        world.may_train.clear()
        self._fate.calm()
        wrong = await self._judged_as_it_is()
        self._fate.heal()
        wrong += await self._judged_as_it_is()
        wrong += world.network.failures
        gc.collect()
        await asyncio.sleep(1)  # for what ends with what nobody refers to any more
        self._footprints.append(Footprint.now())
        world.may_train.set()
        return wrong

    async def _judged_as_it_is(self) -> list[str]:
        world = self._world
        # Leases of who is gone end, and a controller's grace, and what was lost is sent again.
        await asyncio.sleep(4 * LEASE_S)
        routing = world.routing.without(world.dead_links)
        await world.traffic.all_arrived(routing, _PATIENCE_S)
        wrong = oracles.not_arrived(world.traffic, routing)
        for name, job in world.jobs.items():
            assert job.client is not None
            if not await job.client.acknowledged(name, _PATIENCE_S):
                wrong.append(f"{name} is not acknowledged: {job.client.refusal(name)}")
        with oracles.silences_noted(world) as silences:
            wrong += await self._judged_once_tried()
        return wrong + silences

    async def _judged_once_tried(self) -> list[str]:
        world = self._world
        assert world.controller is not None
        telemetry = world.controller.telemetry
        for _ in range(round(_TRIED_S / _PROBED_S)):
            if telemetry.silent_links <= world.dead_links:
                break
            await asyncio.sleep(_PROBED_S)
        planner, ports = world.controller.planner, world.controller.ports
        damped, planner.links = planner.links, LinkHealth(world.fabric, damping=None)
        planner.links.set_port_states(ports.states, LoopClock().now_s())
        try:
            return await self._judged_once_planned(world.controller)
        finally:
            planner.links, now_s = damped, LoopClock().now_s()
            damped.set_port_states(ports.states, now_s)
            damped.set_silent_links(world.controller.telemetry.silent_links, now_s)

    async def _judged_once_planned(self, controller: ControllerCore) -> list[str]:
        world, wrong = self._world, []
        assert world.southbound is not None
        controller.planner.mark_changed()
        down = [name for name, switch in world.emulated.switches.items() if not switch.power.is_on]
        try:
            await controller.planner.settle()
            await asyncio.wait_for(world.southbound.caught_up(down), _PATIENCE_S)
            await asyncio.sleep(_TOLD_S)
        except (SouthboundError, TimeoutError) as error:
            statuses = ", ".join(f"{status.name} {status.condition}" for status in world.southbound.statuses())
            wrong.append(f"the plan is not in force: {error!r}; {statuses}")
        registered = {job.request.name: job for job in controller.registry.jobs}
        wrong += lost_registrations(world.ledger.jobs, controller.registry)
        wrong += oracles.other_five_tuples(world.jobs, registered)
        wrong += oracles.strange_registrations(world)
        wrong += oracles.rules_without_jobs(world)
        believed_dead = controller.planner.links.dead_links(LoopClock().now_s())
        wrong += oracles.unknown_links(world, believed_dead)
        wrong += await oracles.strange_entries(world, self._reference, believed_dead)
        for _ in range(_MOST_PROBED):
            await asyncio.sleep(_PROBED_S)
            found = oracles.silent_agents(world) + oracles.other_candidates(world, registered, LoopClock().now_s())
            if not found:
                break
        return wrong + found

    def _decided_otherwise(self) -> list[str]:
        database = self._world.config.database
        assert database is not None
        return oracles.decided_otherwise(database)

    @contextmanager
    def _explaining_failures(self, number: int) -> Iterator[None]:
        """Add to any error how to repeat the event that caused it."""
        try:
            yield
        except ChaosError:
            raise
        except Exception as error:
            self._fail(number, traceback.format_exception(error))

    def _fail_if(self, number: int, wrong: list[str]) -> None:
        if wrong:
            self._fail(number, wrong)

    def _fail(self, number: int, wrong: list[str]) -> None:
        found = "\n  ".join(wrong)
        latest = "\n  ".join(self._fate.history)
        raise ChaosError(
            f"seed {self._seed} after event {number} ({self._world.config.policy}, {self._world.config.steering}):"
            f"\n  {found}\nthe latest events:\n  {latest}"
            f"\nagain: {self._again(number)}"
        )

    def _again(self, number: int) -> str:
        """Return the command that repeats the run up to an event."""
        return f"make chaos SEED={self._seed} EVENTS={number}"
