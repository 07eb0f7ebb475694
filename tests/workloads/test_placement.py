from typing import Any

import pytest

from topologies.specification import ClosSpecification
from workloads.placement import GpuLedger, choose_hosts, place
from workloads.scenario import PlacementPolicy, Scenario

FOREVER = float("inf")


def test_jobs_take_the_next_free_gpus_and_the_nics_beside_them(document: dict[str, Any]) -> None:
    first = document["jobs"][0]
    document["jobs"] = [
        {**first, "name": name, "hosts": hosts, "gpus_per_host": gpus}
        for name, hosts, gpus in [("a", ["h0"], 1), ("b", ["h0", "h1"], 2), ("c", ["h0"], 1)]
    ]
    scenario = Scenario.model_validate(document)
    a, b, c = place(scenario, scenario.topology.build())
    assert (a.gpus, a.nics) == ({"h0": (0,)}, {"h0": (0,)})
    assert (b.gpus, b.nics) == ({"h0": (1, 2), "h1": (0, 1)}, {"h0": (0, 1), "h1": (0,)})
    assert (c.gpus, c.nics) == ({"h0": (3,)}, {"h0": (1,)})


def test_gpus_come_free_when_their_job_ends() -> None:
    ledger = GpuLedger(gpus_per_host=4)
    assert ledger.take("early", "h0", 3, from_s=0, until_s=10) == (0, 1, 2)
    assert ledger.take("beside", "h0", 1, from_s=5, until_s=FOREVER) == (3,)
    assert ledger.take("late", "h0", 3, from_s=10, until_s=FOREVER) == (0, 1, 2)
    assert ledger.take("earlier", "h0", 1, from_s=0, until_s=5) == (3,)


def test_gpus_that_do_not_suffice_are_refused_and_nothing_is_taken() -> None:
    ledger = GpuLedger(gpus_per_host=4)
    ledger.take("a", "h0", 3, from_s=0, until_s=FOREVER)
    with pytest.raises(ValueError, match=r"at most 1 GPUs, asked for 2: h0 has 4, of which 3 are held .* by a"):
        ledger.take("b", "h0", 2, from_s=7, until_s=8)
    assert ledger.take("c", "h0", 1, from_s=0, until_s=FOREVER) == (3,)


@pytest.mark.parametrize(
    ("policy", "count", "hosts"),
    [
        ("affinity", 1, ("h4",)),  # the switch that is fullest
        ("affinity", 2, ("h2", "h3")),
        ("affinity", 3, ("h0", "h1", "h2")),  # switches of equal room in their order
        ("spread", 3, ("h0", "h2", "h4")),
        ("spread", 4, ("h0", "h1", "h2", "h4")),
    ],
)
def test_placements_choose_hosts_by_their_switches(policy: str, count: int, hosts: tuple[str, ...]) -> None:
    fabric = ClosSpecification(
        kind="clos", tors=3, aggs=1, hosts_per_tor=2, gpus_per_host=4, host_link_gbps=1, uplink_gbps=1
    ).build()
    ledger = GpuLedger(fabric.gpus_per_host)
    ledger.take("there", "h5", 3, from_s=0, until_s=FOREVER)
    if count == 2:
        ledger.take("there", "h0", 4, from_s=0, until_s=10)

    def choose(from_s: float) -> tuple[str, ...]:
        return choose_hosts(ledger, fabric, count, 2, PlacementPolicy(policy), from_s, FOREVER)

    assert choose(0.0) == hosts
    with pytest.raises(ValueError, match=r"at most \d hosts with 2 free GPUs, asked for 6"):
        choose_hosts(ledger, fabric, 6, 2, PlacementPolicy(policy), 0.0, FOREVER)


def test_a_job_may_take_a_gpu_of_each_nic(document: dict[str, Any]) -> None:
    first = document["jobs"][0]
    document["jobs"] = [
        {**first, "name": "a", "gpus_per_host": 2, "gpu_choice": "per_nic"},
        {**first, "name": "b", "gpus_per_host": 1},
        {**first, "name": "c", "gpus_per_host": 1},
    ]
    scenario = Scenario.model_validate(document)
    a, b, c = place(scenario, scenario.topology.build())
    assert (a.gpus["h0"], a.nics["h0"]) == ((0, 2), (0, 1))
    assert (b.gpus["h0"], b.nics["h0"]) == ((1,), (0,))
    assert (c.gpus["h0"], c.nics["h0"]) == ((3,), (1,))
