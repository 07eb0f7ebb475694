"""Whether a switch takes anything from a controller that another one has taken over from.

Two controllers are connected to one Open vSwitch. They take it over from each other in turn, each with a newer
generation id, while the former master is writing.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any

from benchmarks.openflow_cases.messages import DATAPATH_ID, PROTOCOLS, entries
from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.channel_errors import StaleError
from controller.southbound.openflow.flow_encoder import (
    OWNER_MASK,
    delete_by_cookie,
    encode_own,
    owner_cookie,
)
from controller.southbound.openflow.flow_stats import decode_flow_stats, flows_request
from controller.southbound.openflow.listener import OpenFlowListener
from tests.openvswitch import add_dummy_bridge
from topologies.openvswitch.daemons import OpenVSwitch

_OWNERS = owner_cookie("first"), owner_cookie("second")


async def failover_figures(num_failovers: int, num_flows: int, version: int = 6) -> dict[str, int]:
    """Return what a switch has accepted of former masters in so many fail-overs.

    ``stale_writes_accepted`` counts the writes that were acknowledged after the new master's claim, the old claims that
    were granted, and the entries of the former master that the switch holds after the new master has deleted them.
    ``stale_writes`` counts the attempts.

    Raises:
        NetworkError: Open vSwitch is not installed, or does not start.
    """
    with OpenVSwitch(has_dummies=True) as openvswitch:
        async with AsyncExitStack() as stack:
            connected: list[asyncio.Queue[OpenFlowChannel]] = [asyncio.Queue() for _ in _OWNERS]
            listeners = [OpenFlowListener([DATAPATH_ID], queue.put_nowait) for queue in connected]
            places = [await stack.enter_async_context(each.serving("127.0.0.1:0")) for each in listeners]
            await asyncio.to_thread(_add_bridge, openvswitch, PROTOCOLS[version], places)
            channels = [await queue.get() for queue in connected]
            await channels[0].claim(1)
            accepted = [await _fail_over(channels, term, num_flows) for term in range(1, num_failovers + 1)]
    return {
        "failovers": num_failovers,
        "stale_writes": sum(map(len, accepted)),
        "stale_writes_accepted": sum(map(sum, accepted)),
    }


def _add_bridge(openvswitch: OpenVSwitch, protocols: str, places: list[str]) -> None:
    add_dummy_bridge(openvswitch, "t0", DATAPATH_ID, [], f"protocols={protocols}")
    openvswitch.vsctl("set-controller", "t0", *(f"tcp:{place}" for place in places))


async def _fail_over(channels: list[OpenFlowChannel], term: int, num_flows: int) -> list[int]:
    """Have the other controller take over from the master of this term; return what was accepted of each attempt."""
    former, new = channels[(term - 1) % 2], channels[term % 2]
    owner = _OWNERS[(term - 1) % 2]
    mods = [encode_own(entry, owner, former.version) for entry in entries(num_flows)]
    await former.write(mods)
    writing = asyncio.create_task(former.write(mods))
    await asyncio.sleep(0)
    await new.claim(term + 1)
    await new.write([delete_by_cookie(owner, OWNER_MASK, new.version)])
    with suppress(StaleError):
        await writing  # what the switch carried out before the claim is deleted
    accepted = [await _is_accepted(former.write(mods)), await _is_accepted(former.claim(term))]
    replies = await new.request(flows_request(owner, OWNER_MASK, new.version))
    return [*accepted, len(decode_flow_stats(replies, new.version))]


async def _is_accepted(attempt: Coroutine[Any, Any, None]) -> bool:
    try:
        await attempt
    except StaleError:
        return False
    return True
