"""The minimal program of the emulator's benchmark forwards the benchmark's load."""

import pytest

from benchmarks.emulator import SEED, TESTBED, Load, forwarding_fabric
from emulator.observations import Drops
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing


@pytest.mark.slow
def test_every_packet_of_the_load_reaches_its_host() -> None:
    fabric = TESTBED.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, SEED))
    emulated = forwarding_fabric(fabric, routing)
    Load(fabric, routing, emulated, steers=False).run(20_000)
    assert emulated.misdelivered == 0
    assert {emulated.drops(switch) for switch in fabric.switches} == {Drops(*[0] * len(Drops.__dataclass_fields__))}
