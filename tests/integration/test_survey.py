"""``trainyard discover`` writes the file of a fabric that runs, and leaves its switches as they are."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from controller.discovery.arp_packets import ArpPacket
from controller.discovery.lldp_packets import LldpPacket
from tests.integration.miscabled import RunningFabric, controlled, running, with_ports
from topologies.addressing import BROADCAST_MAC, Address, MacAddress
from topologies.fabric import Fabric
from topologies.specification import ClosSpecification
from trainyard.cli.application import application

CLOS = ClosSpecification(
    kind="clos", tors=2, aggs=1, hosts_per_tor=1, host_link_gbps=10, uplink_gbps=10, uplinks_per_pair=2
)


def _file(tmp_path: Path, fabric: RunningFabric) -> Path:
    path = tmp_path / "switches.yaml"
    path.write_text(yaml.safe_dump({"switches": [each.model_dump(exclude_none=True) for each in fabric.switches]}))
    return path


async def _discover(path: Path, *options: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, application, ["discover", str(path), "--listen", "5", *options])


async def _speak(fabric: RunningFabric, file: Fabric) -> None:
    """Have each host tell its name by LLDP, and ask for its gateway by ARP, until cancelled."""
    while True:
        for nic in file.nic_by_address.values():
            assert nic.mac is not None
            request = ArpPacket(False, nic.mac, nic.address, MacAddress(0), Address(nic.subnet.address + 254))
            for octets in (request.frame(BROADCAST_MAC), LldpPacket(nic.host, nic.name, 120, nic.host).frame(nic.mac)):
                await fabric.send(nic, octets)
        await asyncio.sleep(0.1)


def _cables(document: dict[str, Any]) -> set[frozenset[str]]:
    return {frozenset(cable["ends"]) for cable in document["topology"]["cables"]}


def test_a_fabric_is_written_down_as_it_is(tmp_path: Path) -> None:
    async def test() -> None:
        file = with_ports(CLOS.build())
        async with running(file) as fabric:
            path = _file(tmp_path, fabric)
            without = await _discover(path)
            assert without.exit_code == 1
            assert "t0: it runs no P4 program" in without.stderr
            speaking = asyncio.create_task(_speak(fabric, file))
            result = await _discover(path, "--load-program", "--subnet", "10.0.0.0/24", "--subnet", "10.0.1.0/24")
            speaking.cancel()
            assert result.exit_code == 0, result.output
            document = yaml.safe_load(result.stdout)
            found = [
                (host["name"], nic["address"], nic["mac"])
                for host in document["topology"]["hosts"]
                for nic in host["nics"]
            ]
            assert found == [(nic.host, f"{nic.address}/24", str(nic.mac)) for nic in file.nic_by_address.values()]
            names = {
                (switch["name"], port["number"]): f"{switch['name']}:{port['name']}"
                for switch in document["topology"]["switches"]
                for port in switch["ports"]
            }
            names |= {(nic.host, nic.index): f"{nic.host}:{nic.name}" for nic in file.nic_by_address.values()}
            assert _cables(document) == {
                frozenset((names[link.source, link.source_port], names[link.destination, link.destination_port]))
                for link in file.links
            }
            assert result.stdout.count("# fill in: gbps") == len(file.cables)
            for switch in fabric.emulated.switches.values():
                assert not list(switch.entries("ingress.routing"))

    asyncio.run(test())


def test_switches_of_a_controller_are_left_to_it(tmp_path: Path) -> None:
    async def test() -> None:
        file = with_ports(CLOS.build())
        async with running(file) as fabric, controlled(fabric, file) as controller:
            result = await _discover(_file(tmp_path, fabric))
            assert result.exit_code == 1
            assert "t0: a controller has it" in result.stderr
            await controller.southbound.caught_up()

    asyncio.run(test())


@pytest.mark.parametrize(
    ("text", "options", "problem"),
    [
        ("switches: []", (), "switches: "),
        ("switches: [{name: a, address: '127.0.0.1:1'}, {name: a, address: '127.0.0.1:2'}]", (), "is listed twice"),
        ("switches: [{name: a, address: 'leaf.example:1'}]", (), "set switch_tls"),
        ("switches: [{name: a, address: '127.0.0.1:1', colour: red}]", (), "switches[0] a, colour: "),
        ("switches: [{name: a, address: '127.0.0.1:1'}]", ("--subnet", "10.0.0.0/8"), "prefix length from 20 to 32"),
        ("switches: [{name: a, address: '127.0.0.1:1'}]", ("--subnet", "10.0.0.1/24"), "first address"),
    ],
)
def test_a_wrong_file_or_subnet_is_refused(tmp_path: Path, text: str, options: tuple[str, ...], problem: str) -> None:
    path = tmp_path / "switches.yaml"
    path.write_text(text)
    result = CliRunner().invoke(application, ["discover", str(path), *options])
    assert result.exit_code == 2
    assert problem in result.stderr
