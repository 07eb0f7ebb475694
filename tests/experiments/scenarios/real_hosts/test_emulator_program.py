"""The emulator of a run gets its fabric as JSON."""

import json
from pathlib import Path

from experiments.scenarios.real_hosts.emulator_program import EmulatorPlan, fabric_of
from tests.experiments.scenarios.real_hosts.jobs import jobs_of


def test_the_fabric_comes_back_link_by_link() -> None:
    fabric = jobs_of({})[0].fabric
    plan = EmulatorPlan.of(fabric, {("h0", 1): "veth1"}, Path("/run/netns/f"), "127.0.0.1:0", is_real_time=True)
    found = EmulatorPlan(**json.loads(plan.to_json()))
    assert fabric_of(found) == fabric
    assert (found.wires, found.namespace, found.is_real_time) == ([["h0", 1, "veth1"]], "/run/netns/f", True)
