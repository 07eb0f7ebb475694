"""How many flow mods a second Open vSwitch takes from us, and how long all entries take to read back.

For ``benchmarks/openflow.py``.
"""

import asyncio
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.entries import FlowEntry, FlowKey, Forward, Match, SetDscp, SetQueue, Table
from controller.southbound.openflow.flow_encoder import (
    OWNER_MASK,
    delete_by_cookie,
    encode_own,
    owner_cookie,
)
from controller.southbound.openflow.flow_stats import decode_flow_stats, flows_request
from controller.southbound.openflow.listener import OpenFlowListener
from topologies.addressing import FLOW_DESTINATION_PORT, UDP_PROTOCOL, Address, Prefix, switch_mac
from topologies.openvswitch.daemons import OpenVSwitch

DATAPATH_ID = 1
PROTOCOLS = {4: "OpenFlow13", 6: "OpenFlow13,OpenFlow15"}
"""What the bridge offers so that this version is spoken."""
_OWNER = owner_cookie("benchmark")
_IPV4, _LEVELS, _PORTS, _FIRST_ADDRESS = 0x0800, 8, 32, 0x0A00_0000


def entries(count: int) -> list[FlowEntry]:
    """Return the entries of so many flows, each with its 5-tuple, level, queue and port."""
    return [
        FlowEntry(
            FlowKey(
                Table.RULES,
                100,
                Match(
                    ether_type=_IPV4,
                    source=Prefix(Address(_FIRST_ADDRESS + number), 32),
                    destination=Prefix(Address(_FIRST_ADDRESS + count + number), 32),
                    protocol=UDP_PROTOCOL,
                    source_port=49_152 + number % 16_384,
                    destination_port=FLOW_DESTINATION_PORT,
                ),
            ),
            (
                SetDscp(8 * (number % _LEVELS)),
                SetQueue(number % _LEVELS),
                Forward(1 + number % _PORTS, switch_mac(1, number % _PORTS), switch_mac(2, number % _PORTS)),
            ),
        )
        for number in range(count)
    ]


def codec_figures(flows: list[FlowEntry], rounds: int) -> dict[str, float]:
    """Return how many flow mods are made of entries in a second of processor time, cookies included."""
    seconds = [_seconds(lambda: [encode_own(entry, _OWNER, 6) for entry in flows], process_time) for _ in range(rounds)]
    return {"flow_mods_encoded_per_s": round(len(flows) / statistics.median(seconds))}


async def switch_figures(flows: list[FlowEntry], version: int, rounds: int) -> dict[str, float]:
    """Return the medians of so many rounds with an Open vSwitch of our own.

    Each writes prebuilt flow mods into an empty switch, until it has carried them out, and reads all entries back and
    compares them with those written.

    Raises:
        NetworkError: Open vSwitch is not installed, or does not start.
        AssertionError: What is read back is not what was written.
    """
    prebuilt = [encode_own(entry, _OWNER, version) for entry in flows]
    written = {entry.key: entry for entry in flows}
    written_s, costs_us, switch_costs_us, read_s, decoded_s = [], [], [], [], []
    with OpenVSwitch(has_dummies=True) as switch:
        connected: asyncio.Queue[OpenFlowChannel] = asyncio.Queue()
        async with OpenFlowListener([DATAPATH_ID], connected.put_nowait).serving("127.0.0.1:0") as address:
            await asyncio.to_thread(_add_bridge, switch, PROTOCOLS[version], address)
            channel = await connected.get()
            assert channel.version == version
            for _ in range(rounds):
                await channel.write([delete_by_cookie(0, 0, version)])
                began_s, cpu_began_s, switch_began_s = perf_counter(), process_time(), _processor_s(switch)
                await channel.write(prebuilt)
                written_s.append(perf_counter() - began_s)
                costs_us.append(1e6 * (process_time() - cpu_began_s) / len(flows))
                switch_costs_us.append(1e6 * (_processor_s(switch) - switch_began_s) / len(flows))
                began_s = perf_counter()
                replies = await channel.request(flows_request(_OWNER, OWNER_MASK, version))
                held = decode_flow_stats(replies, version)
                is_same = {flow.entry.key: flow.entry for flow in held if flow.entry} == written
                read_s.append(perf_counter() - began_s)
                assert is_same, "what is read back is not what was written"
                decoded_s.append(_seconds(partial(decode_flow_stats, replies, version), process_time))
    return {
        "flow_mods_prebuilt_per_s": round(len(flows) / statistics.median(written_s)),
        "flow_mod_prebuilt_cpu_us": round(statistics.median(costs_us), 2),
        "flow_mod_switch_cpu_us": round(statistics.median(switch_costs_us), 2),
        "read_back_10k_s": round(statistics.median(read_s) * 10_000 / len(flows), 3),
        "flows_decoded_per_s": round(len(flows) / statistics.median(decoded_s)),
    }


def _add_bridge(switch: OpenVSwitch, protocols: str, address: str) -> None:
    columns = [
        "datapath_type=dummy",
        f"protocols={protocols}",
        "fail_mode=secure",
        f"other-config:datapath-id={DATAPATH_ID:016x}",
    ]
    switch.vsctl("add-br", "t0", "--", "set", "bridge", "t0", *columns, "--", "set-controller", "t0", f"tcp:{address}")


def _processor_s(switch: OpenVSwitch) -> float:
    """The processor time that the switch daemon has taken so far."""
    threads = Path(f"/proc/{switch.process_ids[-1]}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def _seconds(work: Callable[[], object], clock: Callable[[], float]) -> float:
    began_s = clock()
    work()
    return clock() - began_s
