"""The controller computes the hash that the program for Tofino does."""

from random import Random

import pytest

from tests.p4src.tna.stored import TRAINYARD, translated
from topologies.addressing import Address, FiveTuple
from topologies.ecmp import TabulatedHash, flow_crc

FLOWS_PER_SALT = 10_000


@pytest.mark.slow
@pytest.mark.parametrize("salt", [1, *(Random(f"salt {number}").getrandbits(32) for number in range(9))])
def test_the_controllers_hash_is_the_programs(salt: int) -> None:
    random, law, program = Random(salt), TabulatedHash(salt), translated(TRAINYARD).start()
    program.tables["ingress.node"].set_default("ingress.set_node", (salt,))
    whole = {**program.ingress.initial, "headers.ipv4.$valid": 1, "headers.ipv4.time_to_live": 64}
    for _ in range(FLOWS_PER_SALT):
        source, destination = Address(random.getrandbits(32)), Address(random.getrandbits(32))
        flow = FiveTuple(source, destination, random.getrandbits(8), random.getrandbits(16), random.getrandbits(16))
        values = whole | {
            "headers.ipv4.source": flow.source_address,
            "headers.ipv4.destination": flow.destination_address,
            "headers.ipv4.protocol": flow.protocol,
            "metadata.source_port": flow.source_port,
            "metadata.destination_port": flow.destination_port,
            "$counted_bytes": 0,
        }
        program.ingress.control(values)
        assert values["metadata.ecmp_hash"] == law.hash_of_crc(flow_crc(flow)), flow
