"""The emulator of a run gets its fabric as JSON."""

import json
from pathlib import Path
from random import Random

import pytest

from experiments.scenarios.real_hosts.emulator_program import EmulatorPlan, fabric_of
from tests.experiments.scenarios.real_hosts.jobs import jobs_of
from tests.topologies.renumbering import renumbered
from topologies.fabric import Fabric

REGULAR = jobs_of({})[0].fabric


@pytest.mark.parametrize("fabric", [REGULAR, renumbered(REGULAR, Random(1))], ids=["regular", "renumbered"])
def test_the_fabric_comes_back_as_it_is(fabric: Fabric) -> None:
    plan = EmulatorPlan.of(fabric, {("h0", 1): "veth1"}, Path("/run/netns/f"), "127.0.0.1:0", is_real_time=True)
    found = EmulatorPlan(**json.loads(plan.to_json()))
    assert fabric_of(found) == fabric
    assert (found.wires, found.namespace, found.is_real_time) == ([["h0", 1, "veth1"]], "/run/netns/f", True)
