"""A survey notes whoever speaks, and says which switch is the reason where it cannot be made."""

import asyncio

import pytest
import yaml
from finsy import P4PacketIn

from controller.discovery.arp_packets import NOBODY, ArpPacket
from controller.discovery.lldp_packets import LldpPacket
from controller.discovery.survey import SurveyedPort, SurveyedSwitch
from controller.discovery.survey_config import SurveyConfig
from controller.discovery.survey_file import survey_file
from controller.discovery.surveyor import SurveyError, Surveyor, survey
from controller.southbound.p4runtime.packets import PacketGate
from p4src import P4INFO
from tests.controller.southbound.p4runtime.memory_server import MemoryServer, serving
from tests.controller.southbound.p4runtime.tofino_server import TofinoServer, tofino
from topologies.addressing import BROADCAST_MAC, Address, MacAddress


def test_hosts_at_ports_that_the_switch_has_not_told_of_are_written_down_with_their_ports() -> None:
    gate = PacketGate()
    gate.listen(lambda: None)
    switch = SurveyedSwitch("leaf", "127.0.0.1:9000", 1, None, {1: SurveyedPort("Ethernet1", True)})
    surveyor = Surveyor((switch,), gate)
    mac = MacAddress.parse("b8:59:9f:00:00:01")
    question = ArpPacket(False, mac, Address.parse("192.168.7.11"), MacAddress(0), NOBODY).frame(BROADCAST_MAC)
    gate.receive("leaf", P4PacketIn(question, metadata={"ingress_port": 70}))
    gate.receive("leaf", P4PacketIn(LldpPacket("aa", "ens1", 120, "gpu-2").frame(mac), metadata={"ingress_port": 71}))
    surveyor.take()
    document = yaml.safe_load(survey_file(surveyor.survey))["topology"]
    assert document["switches"][0]["ports"] == [
        {"name": "Ethernet1", "number": 1},
        {"name": "70", "number": 70},
        {"name": "71", "number": 71},
    ]
    assert {tuple(cable["ends"]) for cable in document["cables"]} == {
        ("host-1:nic0", "leaf:70"),
        ("gpu-2:ens1", "leaf:71"),
    }


def test_the_program_of_a_switch_tells_its_target_and_which_ports_to_try() -> None:
    async def test() -> None:
        async with serving(tofino(), name="leaf") as first, serving(MemoryServer(), name="spine") as second:
            found = await survey(SurveyConfig(switches=(first, second)), P4INFO.parent, (), 0.0)
        document = yaml.safe_load(survey_file(found))["topology"]
        leaf, spine = document["switches"]
        assert (leaf["target"], spine.get("target")) == ("tofino", None)
        tried = [port["number"] for port in leaf["ports"]], [port["number"] for port in spine["ports"]]
        pipes = [*range(1, 64), *range(128, 192), *range(256, 320), *range(384, 448)]
        assert tried == (pipes, [*range(1, 65)])

    asyncio.run(test())


def test_a_tofino_without_a_program_is_named() -> None:
    async def test() -> None:
        async with serving(TofinoServer(), name="leaf") as address:
            with pytest.raises(SurveyError, match=r"^switch leaf: it runs no P4 program$"):
                await survey(SurveyConfig(switches=(address,)), None, (), 0.0)

    asyncio.run(test())


def test_a_switch_that_refuses_the_program_is_named() -> None:
    async def test() -> None:
        memory = MemoryServer()
        memory.takes_programs = False
        async with serving(memory, name="spine") as address:
            with pytest.raises(SurveyError, match="switch spine: it does not take the P4 program: UNIMPLEMENTED"):
                await survey(SurveyConfig(switches=(address,)), P4INFO.parent, (), 0.0)

    asyncio.run(test())
