"""Follow two flows from registration to their queues: ``python docs/examples/follow_a_flow.py``.

``docs/following-a-flow.md`` names the code behind each line of the output.
"""

import asyncio
from ipaddress import IPv4Address

from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from emulator.compiler.program import compile_program
from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.observations import Completion, TraceKind
from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from experiments.scenarios.controller_process import ControllerProcess
from experiments.scenarios.driven.client import DrivenTime
from hostlib import Flow, FlowGroup, Job, Nic, Profile
from hostlib.connection import Connection
from p4src import P4INFO, PROGRAM
from topologies.addressing import FiveTuple
from topologies.specification import DumbbellSpecification

DUMBBELL = DumbbellSpecification(kind="dumbbell", hosts_per_side=2, host_link_gbps=1, bottleneck_gbps=1)
SIZE_BYTES = 2_000_000
JOBS = {
    "vision": Job("vision", ("h0", "h2"), 16, Profile(compute_s=0.2, comm_start=0.5, work=3.2)),
    "language": Job("language", ("h1", "h3"), 16, Profile(compute_s=1.2, comm_start=0.7, work=19.2)),
}


async def main() -> None:
    """Run one dumbbell, one controller, two jobs of one flow each, and one transfer of each flow."""
    emulated = EmulatedFabric(DUMBBELL.build(), compile_program(PROGRAM.read_text()), trace_rows=100_000)
    pipeline = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())
    async with serve(P4RuntimeService(emulated.switches.values(), pipeline, asyncio.Lock())) as port:
        switches = tuple(
            SwitchAddress(name=switch.name, address=f"127.0.0.1:{port}", device_id=switch.device_id)
            for switch in emulated.switches.values()
        )
        config = ControllerConfig(listen="127.0.0.1:0", topology=DUMBBELL, switches=switches, hash_seed=1)
        async with (
            ControllerProcess(config, is_driven=True) as process,
            Connection(process.address) as client,
            DrivenTime(process.address) as time,
        ):
            flows = await register(client, time, emulated)
    print("\nflow rules of t0, as P4Runtime left them")
    rules = {key.match[0].value: action for key, action in emulated.switches["t0"].entries("ingress.flow")}
    for source, action in sorted(rules.items()):
        print(f"  from {IPv4Address(source)}: {action.action} {action.arguments}")
    show_queues(emulated, flows)


async def register(client: Connection, time: DrivenTime, emulated: EmulatedFabric) -> dict[int, str]:
    """Register the jobs, print the answers, and open their connections; return the flows' names by number."""
    opened = {}
    for name, job in JOBS.items():
        await client.register_job(job)
        group = FlowGroup("gradients", (Flow(Nic(job.hosts[0]), Nic(job.hosts[1]), SIZE_BYTES),))
        (five_tuple,) = (await client.register_flow_groups(name, [group]))["gradients"]
        print(f"{name} registered; its flow is {five_tuple.source_address} > {five_tuple.destination_address}")
        opened[name] = FiveTuple(
            int(five_tuple.source_address),
            int(five_tuple.destination_address),
            five_tuple.protocol,
            five_tuple.source_port,
            five_tuple.destination_port,
        )
    await time.settle()  # planned, written to every switch, published to every job
    print("\nthe plan")
    for decision in (await client.plan()).jobs:
        print(f"  {decision.name}: rank {decision.rank}, level {decision.level}. {decision.reason}")
    return {emulated.add_flow(five_tuple): name for name, five_tuple in opened.items()}


def show_queues(emulated: EmulatedFabric, flows: dict[int, str]) -> None:
    """Start both transfers, and print the events in the queues of the shared link."""
    for flow in flows:
        emulated.start_transfer(flow, SIZE_BYTES)
    completed: list[Completion] = []
    while len(completed) < len(flows):
        completed += emulated.run(PS_PER_S)
    shared = next(link for link in emulated.fabric.links if (link.source, link.destination) == ("t0", "t1"))
    rows = [row for row in emulated.take_trace() if row.link == shared.index and row.kind is not TraceKind.LOST]
    print("\nthe queues of t0 in front of the link to t1, from the 20th packet on")
    for row in rows[40:52]:
        moment = f"{row.time_ps / 1e6:8.1f} us"
        print(f"  {moment}  {flows[row.flow]:8} packet {row.number:3} {row.kind.name.lower():7} at level {row.level}")
    print()
    for completion in completed:
        print(f"{flows[completion.flow]} finished after {completion.time_ps / 1e9:.2f} ms")


if __name__ == "__main__":
    asyncio.run(main())
