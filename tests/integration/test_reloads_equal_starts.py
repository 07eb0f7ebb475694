"""A reload from one configuration to another ends in the Plan and the entries of a start with the other."""

import asyncio
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.plan import Plan
from tests.integration.reloading import ReloadedFabric, entities, part, reloaded, whole
from topologies.specification import ClosSpecification

CLOS = ClosSpecification(
    kind="clos", tors=3, aggs=3, hosts_per_tor=2, gpus_per_host=2, host_link_gbps=10, uplink_gbps=10, uplinks_per_pair=2
)
WHOLE = whole(CLOS)
JOBS = {"even": ("h0", "h2"), "all": ("h0", "h2", "h4")}
"""Hosts h1, h3 and h5 are nobody's."""

_SWITCHES = st.sampled_from([(), ("a2",), ("a1", "a2")])
"""Only the last ones can go while the controller runs."""
_HOSTS = st.sets(st.sampled_from(["h1", "h3", "h5"]))
_ENDS = st.tuples(st.sampled_from(["t0", "t1", "t2"]), st.sampled_from(["a0", "a1", "a2"]))


@st.composite
def parts(draw: st.DrawFn) -> dict[str, Any]:
    """A part of the fabric in which every host still has a way to every other one over ``a0``."""
    document = part(WHOLE, hosts=draw(_HOSTS), switches=draw(_SWITCHES))
    gone = draw(st.sets(_ENDS, max_size=4))
    # Of the two cables between a pair of switches one stays, with ``a0`` always the first.
    for ends in sorted(gone):
        at = 1 if "a0" in ends else draw(st.integers(0, 1))
        between = [cable for cable in document["cables"] if {end.partition(":")[0] for end in cable["ends"]} == {*ends}]
        document["cables"] = [cable for cable in document["cables"] if cable not in between[at : at + 1]]
    rates = draw(st.sampled_from([None, 4.0]))
    if rates is not None:
        document["cables"] = [
            cable | ({"gbps": rates} if "a0" in str(cable["ends"]) else {}) for cable in document["cables"]
        ]
    return document


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    """A configuration with a part of the fabric."""
    return {
        "topology": draw(parts()),
        "policy": draw(st.sampled_from(["crux", "ecmp"])),
        "num_levels": draw(st.integers(1, 8)),
        "seed": draw(st.integers(1, 3)),
    }


async def _start(found: ReloadedFabric) -> None:
    for job, hosts in JOBS.items():
        found.register(job, hosts)
    await found.settle()


def _plan(found: ReloadedFabric) -> Plan:
    decision = found.core.planner.decision
    assert decision is not None
    return replace(decision.plan, worth=None, memory=None)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(configurations(), configurations())
def test_a_reload_ends_as_a_start_does(one: dict[str, Any], other: dict[str, Any]) -> None:
    async def test() -> None:
        async with reloaded(CLOS.build(), **other) as found:
            await _start(found)
            plan, state = _plan(found), entities(found)
        async with reloaded(CLOS.build(), **one) as found:
            await _start(found)
            await found.change(**other)
            assert _plan(found) == plan
            assert entities(found) == state

    asyncio.run(test())
