"""Measures what an agent costs its host: ``python benchmarks/agent.py [--json] [--targets N]``, as root, on Linux.

Two hosts are two network namespaces with a cable between them. Both have an agent with the same number of targets, each
with one port to probe, and a NIC of 100 Gbit/s. So each agent sends as many probes as it receives, and reports them to
a controller that accepts everything. The figures are for one agent in the steady state, over 20 s of wall-clock time:

- ``sent_per_s`` and ``received_per_s``: probes;
- ``agent_cpu_share``: its processor time over wall-clock time, with the kernel's work for it;
- ``memory_bytes``: its largest resident size.
"""

import argparse
import asyncio
import ctypes
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import closing, contextmanager
from ipaddress import IPv4Address
from pathlib import Path

import grpc

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.provenance import print_figures, provenance
from hostlib.connection import Connection
from hostlib.telemetry.host_agent import AgentStatus, HostAgent
from hostlib.telemetry.interfaces import Interface
from hostlib.telemetry.probe_agent import ProbeAgent
from hostlib.telemetry.probe_ingress_filter import ProbeIngressFilter
from hostlib.telemetry.sockets import ProbeSockets
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire

RATE_BPS = 100e9
SETTLING_S = 5.0
STEADY_S = 20.0
FIRST_PORT = 50_000
ADDRESSES = {"one": IPv4Address("10.0.0.1"), "other": IPv4Address("10.0.0.2")}

_NETWORK = 0x40000000

Measured = tuple[AgentStatus, AgentStatus, float, int]
"""The status of an agent before and after, its processor seconds in between, and its memory in bytes."""


@contextmanager
def cabled() -> Iterator[dict[str, str]]:
    """Create two namespaces with a cable between them; yield their names by host."""
    names = {host: f"trainyard-{os.getpid()}-{host}" for host in ADDRESSES}
    try:
        for name in names.values():
            _ip("netns", "add", name)
        one, other = names.values()
        _ip(*("link", "add", "eth0", "netns", one, "type", "veth", "peer", "name", "eth0", "netns", other))
        for host, name in names.items():
            _ip("-n", name, "address", "add", f"{ADDRESSES[host]}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
        yield names
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "delete", name], check=False)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@contextmanager
def controller(targets: int) -> Iterator[str]:
    """Serve a controller that gives each host so many targets and ignores its reports; yield its address."""

    def answer(request: wire.ExchangeProbesRequest, _: grpc.ServicerContext) -> wire.ExchangeProbesResponse:
        (there,) = (address for host, address in ADDRESSES.items() if host != request.host)
        ends = {"source_address": int(ADDRESSES[request.host]), "destination_address": int(there), "protocol": 17}
        given = [
            wire.ProbeTarget(**ends, destination_port=1024 + number, source_ports=[FIRST_PORT])
            for number in range(targets if request.targets_version != 1 else 0)
        ]
        return wire.ExchangeProbesResponse(interval_s=1.0, targets_version=1, targets=given)

    method = methods.EXCHANGE_PROBES
    handler = grpc.unary_unary_rpc_method_handler(answer, method.request.FromString, method.response.SerializeToString)
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(methods.SERVICE, {method.name: handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def agent(host: str, namespace: str, address: str, measured: "multiprocessing.Queue[tuple[str, Measured]]") -> None:
    """Run a host's agent in this process: its packets use the namespace, its connection to the controller does not."""
    libc = ctypes.CDLL(None)
    interface = Interface("eth0", ADDRESSES[host], RATE_BPS)
    with Path("/proc/thread-self/ns/net").open() as home, Path("/run/netns", namespace).open() as inside:
        libc.setns(inside.fileno(), _NETWORK)
        sockets, swallowing = ProbeSockets(interface), ProbeIngressFilter("eth0", interface.address)
        libc.setns(home.fileno(), _NETWORK)
    with closing(sockets), closing(swallowing):
        measured.put((host, asyncio.run(_measured(host, sockets, address))))


async def _measured(host: str, sockets: ProbeSockets, address: str) -> Measured:
    async with Connection(address) as connection:
        work = HostAgent(ProbeAgent(host, {ADDRESSES[host]: RATE_BPS}, int(time.time())), [sockets], connection)
        running = asyncio.create_task(work.run())
        await asyncio.sleep(SETTLING_S)
        before, before_s = work.status(), time.process_time()
        await asyncio.sleep(STEADY_S)
        after, spent_s = work.status(), time.process_time() - before_s
        running.cancel()
        return before, after, spent_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def figures(targets: int) -> dict[str, float]:
    """Measure the agent of host ``one``."""
    spawning = multiprocessing.get_context("spawn")
    measured: multiprocessing.Queue[tuple[str, Measured]] = spawning.Queue()
    with cabled() as names, controller(targets) as address:
        agents = [spawning.Process(target=agent, args=(host, name, address, measured)) for host, name in names.items()]
        for process in agents:
            process.start()
        by_host = dict(measured.get(timeout=SETTLING_S + STEADY_S + 60) for _ in agents)
        for process in agents:
            process.join()
    before, after, spent_s, memory_bytes = by_host["one"]
    return {
        "targets": after.targets,
        "sent_per_s": (after.sent - before.sent) / STEADY_S,
        "received_per_s": (after.received - before.received) / STEADY_S,
        "agent_cpu_share": round(spent_s / STEADY_S, 4),
        "memory_bytes": memory_bytes,
    }


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description="Measure what an agent costs its host.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--targets", type=int, default=1000, help="pairs of NICs that each host probes (default: 1,000)"
    )
    options = parser.parse_args()
    print_figures(figures(options.targets) | provenance(("grpcio", "protobuf")), as_json=options.json)


if __name__ == "__main__":
    main()
