"""Hosts reach each other through bridges of Open vSwitch, whose ports send urgent packets first."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.openvswitch import skip_without_openvswitch
from tests.patience import PATIENCE_S
from tests.topologies.namespaces.conftest import skip_unless_permitted
from tests.topologies.namespaces.owners import wait_until
from tests.topologies.openvswitch.static_flows import add_static_flows
from topologies.description import described
from topologies.fabric import Fabric
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.openvswitch.bridges import fabric_bridges
from topologies.openvswitch.fabric_switches import OpenVSwitchFabric
from topologies.openvswitch.port_queues import MTU_BYTES
from topologies.specification import DumbbellSpecification

_RATE_BPS = 4e6
_PORT_BETWEEN = 3
"""Of the first switch, towards the second."""
_FLOOD = (
    "import socket, sys\n"
    "sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    "sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(sys.argv[1]))\n"
    "while True: sender.sendto(bytes(1000), ('h2', 9))\n"
)


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """Two hosts at each of two switches, with links that any machine fills."""
    rate_gbps = _RATE_BPS / 1e9
    return DumbbellSpecification(
        kind="dumbbell", hosts_per_side=2, host_link_gbps=rate_gbps, bottleneck_gbps=rate_gbps
    ).build()


@pytest.fixture(scope="module")
def namespaces(fabric: Fabric) -> Iterator[FabricNamespaces]:
    """Its hosts."""
    skip_without_openvswitch()
    skip_unless_permitted(())
    with FabricNamespaces(fabric, MTU_BYTES, has_switch_cables=True) as made:
        yield made


@pytest.fixture(scope="module")
def switches(fabric: Fabric, namespaces: FabricNamespaces) -> Iterator[OpenVSwitchFabric]:
    """Its switches, which forward by destination."""
    bridges = fabric_bridges(described(fabric), namespaces.switch_ends)
    with OpenVSwitchFabric(bridges, namespaces.in_fabric, namespaces.mtu_bytes) as made:
        made.add_bridges()
        add_static_flows(fabric, made)
        yield made


def _ping(namespaces: FabricNamespaces, host: str, other: str) -> bool:
    command = namespaces.command(host, "ping", "-c", "1", "-W", "1", other)
    return subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False).returncode == 0


def _sent_bytes(switches: OpenVSwitchFabric) -> list[int]:
    """Return what the port between the switches has sent, by level."""
    return [sent for sent, _ in switches.queue_counts()["t0", _PORT_BETWEEN]]


def test_hosts_reach_each_other(namespaces: FabricNamespaces, switches: OpenVSwitchFabric) -> None:
    assert switches.bridges["t0"].name == "t0"
    for host, other in (("h0", "h1"), ("h0", "h2"), ("h3", "h1")):
        wait_until(lambda host=host, other=other: _ping(namespaces, host, other))


def test_ports_and_datapaths_have_the_fabrics_numbers(fabric: Fabric, switches: OpenVSwitchFabric) -> None:
    for switch, bridge in switches.bridges.items():
        shown = switches.daemons(switch).ofctl("show", bridge.name)
        assert f"dpid:{fabric.device_ids[switch]:016x}" in shown
        for link in fabric.links_from[switch]:
            assert f" {link.source_port}({bridge.ports[link.source_port].interface})" in shown


def test_bridges_forward_nothing_on_their_own(switches: OpenVSwitchFabric) -> None:
    for switch, bridge in switches.bridges.items():
        daemons = switches.daemons(switch)
        columns = daemons.vsctl("get", "bridge", bridge.name, "fail_mode", "other_config", "protocols")
        assert columns.splitlines()[0] == "secure"
        assert 'disable-in-band="true"' in columns
        hidden = daemons.appctl("bridge/dump-flows", bridge.name)
        assert "actions=NORMAL" not in hidden


def test_urgent_packets_leave_first(namespaces: FabricNamespaces, switches: OpenVSwitchFabric) -> None:
    floods = [
        subprocess.Popen(namespaces.command(host, sys.executable, "-c", _FLOOD, str(level << 5)))
        for host, level in (("h0", 7), ("h1", 1))
    ]
    try:
        before = _sent_bytes(switches)

        def is_shared() -> bool:
            now = _sent_bytes(switches)
            return all(now[level] > before[level] + 2000 for level in (1, 7))

        wait_until(is_shared)
        before = _sent_bytes(switches)
        wait_until(lambda: _sent_bytes(switches)[7] > before[7] + _RATE_BPS / 8)
        after = _sent_bytes(switches)
    finally:
        for flood in floods:
            flood.kill()
            flood.wait()
    assert after[7] - before[7] > 4 * (after[1] - before[1])


def test_a_port_that_is_taken_down_is_seen_by_the_switch_and_the_host(
    namespaces: FabricNamespaces, switches: OpenVSwitchFabric
) -> None:
    port = ("t0", 1)
    carrier = namespaces.command("h0", "cat", "/sys/class/net/eth0/carrier")
    switches.set_ports([port], up=False)
    try:
        wait_until(lambda: "LINK_DOWN" in switches.daemons("t0").ofctl("show", "t0"))
        assert subprocess.run(carrier, capture_output=True, text=True, check=False).stdout == "0\n"
    finally:
        switches.set_ports([port], up=True)
    wait_until(lambda: "LINK_DOWN" not in switches.daemons("t0").ofctl("show", "t0"))
    wait_until(lambda: _ping(namespaces, "h0", "h1"))


def test_a_switch_daemon_that_is_started_again_leaves_the_queues_as_they_are(
    namespaces: FabricNamespaces, switches: OpenVSwitchFabric, fabric: Fabric
) -> None:
    interface = switches.bridges["t0"].ports[_PORT_BETWEEN].interface
    before = switches.run_in_fabric("tc", "class", "show", "dev", interface)
    switches.daemons("t0").restart_switch()
    switches.daemons("t0").vsctl("set", "bridge", "t0", "external-ids:seen=yes")
    assert switches.run_in_fabric("tc", "class", "show", "dev", interface) == before
    add_static_flows(fabric, switches)
    wait_until(lambda: _ping(namespaces, "h0", "h2"))
