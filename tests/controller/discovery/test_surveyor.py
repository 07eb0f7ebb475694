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
from tests.controller.southbound.p4runtime.tofino_server import tofino
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


def test_the_program_of_a_switch_tells_its_target() -> None:
    async def test() -> None:
        async with serving(tofino(), name="leaf") as leaf, serving(MemoryServer(), name="spine") as spine:
            found = await survey(SurveyConfig(switches=(leaf, spine)), P4INFO.parent, (), 0.0)
        document = yaml.safe_load(survey_file(found))["topology"]
        assert [switch.get("target", "bmv2") for switch in document["switches"]] == ["tofino", "bmv2"]

    asyncio.run(test())


def test_a_switch_that_refuses_the_program_is_named() -> None:
    async def test() -> None:
        memory = MemoryServer()
        memory.takes_programs = False
        async with serving(memory, name="spine") as address:
            with pytest.raises(SurveyError, match="switch spine: it does not take the P4 program: UNIMPLEMENTED"):
                await survey(SurveyConfig(switches=(address,)), P4INFO.parent, (), 0.0)

    asyncio.run(test())
