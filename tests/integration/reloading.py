"""An emulated fabric under traffic, and a controller whose file has parts of it, one after the other."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import astuple
from typing import Any

from controller.config import ControllerConfig
from controller.process.active_controller import ActiveController, active_controller
from controller.process.changing import change_to
from controller.process.core import ControllerCore
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.reload.keys import key_changes
from controller.southbound.p4runtime.access import SwitchAccess
from controller.southbound.p4runtime.entries import Entity
from controller.southbound.p4runtime.states import Update
from controller.switch_addresses import SwitchAddress
from emulator.compiler.program import compile_program
from emulator.fabric import EmulatedFabric
from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from experiments.scenarios.driven.clock import DrivenClock
from p4src import P4INFO, PROGRAM
from policies.job import Profile
from tests.patience import until
from topologies.addressing import FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.expanding import expanded
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.specification import Topology

BETWEEN_WRITES_S = 0.0002
"""Some sixty packets of every sender."""
TRANSFER_BYTES = 400_000

Document = Mapping[str, Any]


def whole(topology: Topology) -> dict[str, Any]:
    """The file of a fabric with all that it has."""
    return expanded(topology.build()).model_dump(mode="json")


def part(
    document: Document,
    *,
    hosts: Collection[str] = (),
    switches: Collection[str] = (),
    cables: Collection[tuple[str, str]] = (),
) -> dict[str, Any]:
    """The same file without these hosts and switches, all their cables, and these cables by the nodes at both ends."""
    gone = {*hosts, *switches}

    def stays(cable: Mapping[str, Any]) -> bool:
        first, second = (end.partition(":")[0] for end in cable["ends"])
        return gone.isdisjoint((first, second)) and not {(first, second), (second, first)} & set(cables)

    return {
        **document,
        "hosts": [host for host in document["hosts"] if host["name"] not in hosts],
        "switches": [switch for switch in document["switches"] if switch["name"] not in switches],
        "cables": [cable for cable in document["cables"] if stays(cable)],
    }


class Traffic:
    """Flows that send without a pause, whoever has registered them."""

    def __init__(self, emulated: EmulatedFabric) -> None:
        self.emulated = emulated
        self._sending: set[FiveTuple] = set()

    def send(self, five_tuples: Collection[FiveTuple]) -> None:
        """Have these flows send, too."""
        for five_tuple in five_tuples:
            if five_tuple not in self._sending:
                self._sending.add(five_tuple)
                self.emulated.start_transfer(self.emulated.add_flow(five_tuple), TRANSFER_BYTES)

    def run(self, duration_s: float) -> None:
        """Let packets flow; virtual time passes at no other moment."""
        until_ps = self.emulated.now_ps + round(duration_s * 1e12)
        while completions := self.emulated.run(until_ps):
            for completion in completions:
                self.emulated.start_transfer(completion.flow, TRANSFER_BYTES)

    def lost(self) -> dict[str, Any]:
        """The switches and hosts that have dropped packets, or got those of others."""
        emulated = self.emulated
        drops = {name: emulated.drops(name) for name in emulated.switches} | {"hosts": emulated.host_drops()}
        found: dict[str, Any] = {name: each for name, each in drops.items() if any(astuple(each))}
        return found | ({"misdelivered": emulated.misdelivered} if emulated.misdelivered else {})


class ReloadedFabric:
    """Switches, their controller, and the traffic between writes.

    Attributes:
        written: The names of switches and the updates of every request since ``written`` was cleared.
    """

    def __init__(
        self, emulated: EmulatedFabric, active: ActiveController, clock: DrivenClock, config: Document
    ) -> None:
        self.emulated = emulated
        self.active = active
        self.traffic = Traffic(emulated)
        self.written: list[tuple[str, Sequence[Update]]] = []
        self._clock = clock
        self._config = dict(config)

    @property
    def core(self) -> ControllerCore:
        """The core in force."""
        return self.active.core

    def register(self, job: str, hosts: Sequence[str], flows_per_pair: int = 2) -> None:
        """Register a job whose hosts send in a ring, and have it planned."""
        registry = self.core.registry
        registry.register_job(
            JobRequest(job, tuple(hosts), 2 * len(hosts), Profile(0.1, 0.5, 1.0)), self._clock.now_s()
        )
        nics = [NicReference(host, 0) for host in hosts]
        pairs = list(zip(nics, nics[1:] + nics[:1], strict=True)) * flows_per_pair
        registry.register_flow_groups(
            job, [FlowGroupRequest("ring", tuple(FlowRequest(*pair, 50_000_000, 0.0) for pair in pairs))]
        )
        self.core.planner.mark_changed()

    async def settle(self) -> None:
        """Have the Plan of now in force."""
        await self.core.planner.settle()
        await self.core.southbound.caught_up()

    @property
    def five_tuples(self) -> list[FiveTuple]:
        """Those of the registered flows."""
        return [five_tuple for job in self.core.registry.jobs for _, five_tuple in job.five_tuples]

    @property
    def addresses(self) -> Sequence[SwitchAddress]:
        """Where all switches are."""
        addresses: Sequence[SwitchAddress] = self._config["switches"]
        return addresses

    async def change(self, *, is_whole: bool = True, **keys: Any) -> Sequence[str]:
        """Go over to the same configuration with other values of these keys, and settle if it ``is_whole``."""
        self._config |= keys
        config = configuration(self._config)
        changes = key_changes(self.active.config, config)
        assert changes.refused == ()
        lines = await self.active.see_through(change_to(self.active, config, changes))
        if is_whole:
            await until(lambda: not self.core.draining.aside)
            await self.settle()
        return lines


def configuration(document: Document) -> ControllerConfig:
    """A configuration whose switches are those of its topology, of all that it lists."""
    names = {switch["name"] for switch in document["topology"]["switches"]}
    switches = tuple(address for address in document["switches"] if address.name in names)
    return ControllerConfig.model_validate({**document, "switches": switches})


@asynccontextmanager
async def served(fabric: Fabric) -> AsyncIterator[tuple[EmulatedFabric, tuple[SwitchAddress, ...]]]:
    """Serve all switches of a fabric, whatever part of it a controller knows."""
    emulated = EmulatedFabric(fabric, compile_program(PROGRAM.read_text()))
    program = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())
    service = P4RuntimeService(emulated.switches.values(), program, asyncio.Lock(), emulated.packet_out)
    async with serve(service) as port:
        yield (
            emulated,
            tuple(
                SwitchAddress(name=switch.name, address=f"127.0.0.1:{port}", device_id=switch.device_id)
                for switch in emulated.switches.values()
            ),
        )


@asynccontextmanager
async def reloaded(fabric: Fabric, topology: Document, **options: Any) -> AsyncIterator[ReloadedFabric]:
    """Run a controller that knows a part of a fabric, in time that does not pass by itself."""
    clock = DrivenClock()
    async with served(fabric) as (emulated, addresses):
        document = {"topology": topology, "switches": addresses, "lease_s": 1e6, "damping": None, **options}
        document["discovery"] = False
        document.setdefault("policy_time_limit_s", 1e6)  # however busy the machine is
        config = configuration(document)
        believed = config.topology.build()
        routing = Routing(believed, hash_multipliers(believed.switches, config.hash_seed))
        async with active_controller(config, routing, clock, plans_by_itself=False) as active:
            found = ReloadedFabric(emulated, active, clock, document)
            await active.core.southbound.caught_up()
            yield found


@asynccontextmanager
async def noted(found: ReloadedFabric) -> AsyncIterator[None]:
    """Let packets flow after every write, and keep what was written, while the context lasts."""
    write = SwitchAccess.write

    async def interrupted(access: SwitchAccess, updates: Sequence[Update]) -> None:
        await write(access, updates)
        found.written.append((access._switch.name, tuple(updates)))
        found.traffic.run(BETWEEN_WRITES_S)

    SwitchAccess.write = interrupted  # type: ignore[method-assign]
    try:
        yield
    finally:
        SwitchAccess.write = write  # type: ignore[method-assign]


def entities(found: ReloadedFabric) -> dict[str, dict[Any, Entity]]:
    """All that every switch of the controller is known to hold."""
    return {name: dict(writer._expected() or {}) for name, writer in found.active.southbound._writers.items()}
