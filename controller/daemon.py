"""The controller process: everything put together, started and stopped."""

import asyncio
import gc
import signal
import sys

import grpc.aio

from controller.clock import Clock, DrivenClock, WallClock
from controller.config import ClockName, ControllerConfig
from controller.directives import DirectiveBoard
from controller.operations.service import OperationsService
from controller.planner import Planner
from controller.policy.enforcement import Enforcement, rate_control
from controller.registry import Registry
from controller.rehearsal import rehearse
from controller.service import SERVER_OPTIONS, ControllerService
from controller.snapshots import Snapshots
from controller.southbound.switches import P4RuntimeSouthbound
from controller.telemetry.probed_paths import ProbedPaths
from controller.telemetry.telemetry import Telemetry
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing

_STOP_GRACE_S = 1.0
_SWITCH_INTERVAL_S = 0.0005
_COLLECTION_THRESHOLDS = (50_000, 20, 50)


def favour_answers() -> None:
    """Let the loop that answers wait little for the threads that plan, and for the garbage collector.

    What the controller holds is many small objects that live long and refer to each other in no circle.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.set_threshold(*_COLLECTION_THRESHOLDS)


async def serve(config: ControllerConfig) -> None:
    """Run a controller until SIGTERM or SIGINT.

    Prints ``listening on HOST:PORT`` when it answers. Rules stay on the switches when it stops. Raises OSError where
    the address cannot be bound.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    favour_answers()
    fabric = config.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))
    clock: Clock = DrivenClock(config.start_s) if config.clock is ClockName.DRIVEN else WallClock()
    registry = Registry(fabric, config.lease_s)
    telemetry = Telemetry(routing, config.lease_s, window_us=config.utilisation_window_us)
    probed = ProbedPaths(telemetry)
    snapshots = Snapshots(registry, routing, config.num_levels, config.seed, probed)
    board = DirectiveBoard(registry)
    southbound = P4RuntimeSouthbound(config.switches, routing, config.pipeline, config.election_id)
    async with southbound:
        if config.clock is ClockName.WALL:
            await asyncio.to_thread(rehearse, config.policy, routing, config.num_levels)
        cadence = rate_control(config.policy, Enforcement.LEVELS).cadence
        planner = Planner(
            registry,
            snapshots,
            routing,
            config.policy,
            config.steering,
            southbound,
            board,
            clock,
            config.hash,
            cadence,
            probed,
        )
        service = ControllerService(registry, planner, board, southbound, clock, telemetry)
        server = grpc.aio.server(options=SERVER_OPTIONS)
        operations = OperationsService(registry, planner, southbound, clock, telemetry)
        server.add_generic_rpc_handlers((service.handler(), operations.handler()))
        port = _bind(server, config.listen)
        await server.start()
        print(f"listening on {config.listen.rpartition(':')[0]}:{port}", flush=True)
        async with asyncio.TaskGroup() as tasks:
            planning = tasks.create_task(planner.run()) if config.clock is ClockName.WALL else None
            await stop.wait()
            if planning is not None:
                planning.cancel()
        await server.stop(_STOP_GRACE_S)


def _bind(server: grpc.aio.Server, address: str) -> int:
    """Bind a server to an address; returns its port, which is another one only where that of the address is 0."""
    try:
        return server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {address}") from error
