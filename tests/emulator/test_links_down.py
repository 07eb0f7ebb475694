"""Links, ports and switches that go down: what is lost, and what is there when they are up again."""

from dataclasses import asdict

import pytest

from emulator.fabric import EmulatedFabric
from tests.emulator.fabrics import advance, dumbbell, emulated, five_tuple, routing_of, star, write_entries
from tests.emulator.packets import ipv4_packet
from tests.emulator.programs import trainyard
from tests.emulator.single_packets import LATER_PS, drops, links_up, send, uplink
from topologies.fabric import Fabric
from topologies.fabric_specification import FabricSpecification


def test_link_that_is_down_loses_what_waits_what_is_on_it_and_what_comes() -> None:
    result = emulated(star(2), trace_rows=1000)
    packet = ipv4_packet(five_tuple(result.fabric, "h0", "h1"))
    down = result.fabric.reverse(uplink(result.fabric, "h1"))
    for _ in range(5):
        result.inject(uplink(result.fabric, "h0"), packet, length=1000)
    result.run(result.now_ps + 100)
    assert result.is_up(down)
    result.set_link(down, up=False)
    assert not result.is_up(down)
    assert drops(result, "s") == {"link_down": 4}
    assert send(result, "h0", packet) == ()
    assert drops(result, "s") == {"link_down": 6}
    result.set_link(down, up=True)
    (capture,) = send(result, "h0", packet)
    assert capture.link == down
    assert drops(result, "s") == {"link_down": 6}
    assert result.is_up(result.fabric.reverse(down))


def test_link_is_up_where_it_is_wanted_and_both_its_ends_are_up() -> None:
    result = emulated(dumbbell(1))
    everything = {("h0", "t0"), ("t0", "h0"), ("t0", "t1"), ("t1", "t0"), ("t1", "h1"), ("h1", "t1")}
    assert links_up(result) == everything
    result.set_switch("t0", up=False)
    result.set_switch("t1", up=False)
    assert links_up(result) == set()
    result.set_switch("t0", up=True)
    assert links_up(result) == {("h0", "t0"), ("t0", "h0")}
    result.set_link(uplink(result.fabric, "h0"), up=False)
    result.set_link(uplink(result.fabric, "h1"), up=True)
    result.set_switch("t1", up=True)
    assert links_up(result) == everything - {("h0", "t0")}
    result.set_switch("t0", up=False)
    result.set_switch("t0", up=True)
    assert links_up(result) == everything - {("h0", "t0")}
    switch = result.switches["t0"]
    assert all(switch.ports.is_up(port) for port in switch.ports)


def test_switch_comes_back_empty_and_others_keep_what_they_have() -> None:
    result = emulated(dumbbell(1))
    connection = five_tuple(result.fabric, "h0", "h1")
    packet = ipv4_packet(connection)
    result.set_switch("t1", up=False)
    assert send(result, "h0", packet) == ()
    assert drops(result, "t0") == {"link_down": 1}
    result.set_switch("t1", up=True)
    assert list(result.switches["t1"].entries("ingress.routing")) == []
    assert send(result, "h0", packet) == ()
    assert drops(result, "t1") == {"no_pipeline": 1}
    result.switches["t1"].clear()
    write_entries(result.switches["t1"], routing_of(result.fabric))
    assert len(send(result, "h0", packet)) == 1


def test_transfer_goes_on_when_its_link_is_up_again() -> None:
    result = emulated(dumbbell(1))
    flow = result.add_flow(five_tuple(result.fabric, "h0", "h1"))
    result.start_transfer(flow, 1_000_000)
    (bottleneck,) = [link.index for link in result.fabric.links if (link.source, link.destination) == ("t0", "t1")]
    assert advance(result, 40_000_000) == []
    result.set_link(bottleneck, up=False)
    assert advance(result, 50_000_000) == []
    result.set_link(bottleneck, up=True)
    (completion,) = advance(result, 10**14)
    assert completion.flow == flow
    assert drops(result, "t0")["link_down"] > 0
    assert result.retransmissions(flow) > 0


def test_host_that_is_cut_off_counts_its_own_losses() -> None:
    result = emulated(star(2))
    result.set_link(uplink(result.fabric, "h0"), up=False)
    result.start_transfer(result.add_flow(five_tuple(result.fabric, "h0", "h1")), 3 * 4096)
    assert advance(result, LATER_PS) == []
    assert asdict(result.host_drops())["link_down"] == 3
    assert drops(result, "s") == {}


def test_a_port_of_the_fabric_file_without_a_cable_is_there_and_down() -> None:
    """An entry may watch it, and gNMI may disable it; nothing leaves by it."""
    result = EmulatedFabric(rack_with_a_spare_port(), trainyard())
    ports = result.switches["leaf"].ports
    assert {port: ports.is_up(port) for port in ports} == {11: True, 12: True, 13: False}
    result.set_port("leaf", 13, enabled=False)
    result.set_port("leaf", 13, enabled=True)
    result.set_switch("leaf", up=False)
    result.set_switch("leaf", up=True)
    assert {port: ports.is_up(port) for port in ports} == {11: True, 12: True, 13: False}
    with pytest.raises(ValueError, match="switch 'leaf' has no port 14"):
        result.set_port("leaf", 14, enabled=True)
    with pytest.raises(ValueError, match="the CPU port cannot be 13: switch 'leaf' has a port of that number"):
        EmulatedFabric(rack_with_a_spare_port(), trainyard(), cpu_port=13)


def rack_with_a_spare_port() -> Fabric:
    """A switch with three ports, and hosts at two of them."""
    hosts = [
        {"name": f"gpu-{number}", "nics": [{"name": "eth0", "address": f"192.168.7.{number}/24"}]} for number in (1, 2)
    ]
    switch = {"name": "leaf", "ports": [{"name": f"e{number}", "number": 10 + number} for number in (1, 2, 3)]}
    cables = [{"ends": [f"gpu-{number}:eth0", f"leaf:e{number}"], "gbps": 100} for number in (1, 2)]
    document = {"kind": "fabric", "hosts": hosts, "switches": [switch], "cables": cables}
    return FabricSpecification.model_validate(document).build()
