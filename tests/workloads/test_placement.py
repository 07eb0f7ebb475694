from typing import Any

import pytest

from workloads.placement import GpuLedger, place
from workloads.scenario import Scenario

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
