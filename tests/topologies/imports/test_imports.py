"""Fabric files from NetBox's tables and from labs of containerlab: what they say, and all that is wrong with them."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.topologies.builders import TOPOLOGY
from topologies.expanding import fabric_file
from topologies.fabric import Fabric
from topologies.imports import netbox
from topologies.imports.containerlab import add_lab
from topologies.imports.draft import Defaults, Draft, ImportFailedError
from topologies.imports.port_names import PortNames

CABLES = """\
side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name,label,speed
gpu-1,dcim.interface,ens1,leaf-1,dcim.interface,Ethernet1/1,A1,100000000
gpu-2,dcim.interface,ens1,leaf-2,dcim.interface,Ethernet1/1,A2,
leaf-1,dcim.interface,Ethernet1/9,leaf-2,dcim.interface,Ethernet1/9,"a, b",
leaf-1,dcim.powerport,psu0,pdu-1,dcim.poweroutlet,4,power,
"""
DEVICES = """\
name;role;device_type;p4runtime;node_id
leaf-2;leaf;7060;leaf-2.example:9559;
leaf-1;leaf;7060;;900
gpu-1;server;xe9680;;
gpu-2;server;xe9680;;
console;other;box;;
"""
ADDRESSES = """\
address,device,interface,status
2001:db8::11/64,gpu-1,ens1,active
192.168.7.11/26,gpu-1,ens1,active
192.168.7.12/26,gpu-2,ens1,active
10.0.0.1/32,leaf-1,loopback0,active
10.9.0.1/24,,,reserved
"""
MACS = "mac_address,device,interface\nB8:59:9F:00:00:01,gpu-1,ens1\n"
INTERFACES = (
    "device,name,type,number,speed\nleaf-1,Ethernet1/9,100gbase,77,400000000\nleaf-2,Ethernet1/9,x,8,400000000\n"
)
LAB = """\
name: rack
topology:
  defaults: {kind: linux}
  groups: {leaves: {kind: bmv2}}
  nodes:
    leaf1: {group: leaves, mgmt-ipv4: 172.20.20.11}
    leaf2: {kind: bmv2}
    gpu1: {exec: ["ip addr add 192.168.7.11/26 dev eth1", "sleep 1"]}
    gpu2: {exec: ["sh -c 'ip -4 address replace 192.168.7.12/26 dev eth1; ip link'"]}
    gpu3:
  links:
    - endpoints: ["gpu1:eth1", "leaf1:eth1"]
    - type: veth
      endpoints:
        - {node: gpu2, interface: eth1, mac: "AA:C1:AB:00:00:02"}
        - {node: leaf2, interface: eth1}
    - endpoints: [leaf1:eth2, leaf2:eth2]
    - {endpoints: [gpu3:eth1, "leaf2:eth3"], ipv4: [192.168.7.13/26, ""]}
"""

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return written


def _rack(write: Write, cables: str = CABLES, addresses: str = ADDRESSES, devices: str = DEVICES) -> Draft:
    draft = Draft()
    roles = netbox.Roles(frozenset(["leaf"]), frozenset(["server"]))
    netbox.add_cabling(draft, write("cables.csv", cables), write("devices.csv", devices), roles)
    netbox.add_addresses(draft, [write("ips.csv", addresses), write("macs.csv", MACS)])
    netbox.add_interfaces(draft, [write("interfaces.csv", INTERFACES)])
    return draft


def _failures(draft: Draft, tmp_path: Path, defaults: Defaults | None = None) -> list[str]:
    with pytest.raises(ImportFailedError) as raised:
        draft.specification(defaults or Defaults())
    return [message.replace(f"{tmp_path}/", "") for message in raised.value.messages]


def _read_back(text: str) -> Fabric:
    return TOPOLOGY.validate_python(yaml.safe_load(text)["topology"]).build()


DEFAULTS = Defaults(gbps=25, delay_us=3, gpus_per_host=4, port_names=PortNames.of(["Ethernet1/{number}"]))


def test_tables_say_nodes_ports_speeds_and_addresses(write: Write) -> None:
    fabric = _read_back(fabric_file(_rack(write).specification(DEFAULTS)))
    assert (fabric.switches, fabric.hosts) == (("leaf-2", "leaf-1"), ("gpu-1", "gpu-2"))
    assert [(link.source_port, link.destination_port, link.rate_bps) for link in fabric.links[::2]] == [
        (0, 1, 100e9),  # its cable says how fast it is
        (0, 1, 25e9),  # nothing does
        (77, 8, 400e9),  # its ports do
    ]
    (nic,), (other,) = fabric.nics["gpu-1"], fabric.nics["gpu-2"]
    assert (str(nic.address), str(nic.mac), str(other.address)) == ("192.168.7.11", "b8:59:9f:00:00:01", "192.168.7.12")
    assert (other.mac, str(other.subnet)) == (None, "192.168.7.0/26")
    assert [fabric.identity[name].node_id for name in fabric.switches] == [1, 900]
    assert (fabric.gpus_per_host, fabric.cables[0].delay_s) == (4, 3e-6)


def test_without_a_table_of_devices_names_tell_the_switches(write: Write) -> None:
    draft = Draft()
    netbox.add_cabling(draft, write("cables.csv", CABLES), None, netbox.Roles(switches=("leaf*",)))
    netbox.add_addresses(draft, [write("ips.csv", ADDRESSES)])
    found = draft.specification(DEFAULTS)
    assert [switch.name for switch in found.switches] == ["leaf-1", "leaf-2"]
    assert [host.name for host in found.hosts] == ["gpu-1", "gpu-2"]


def test_switches_may_all_be_controlled_at_addresses_of_one_form(write: Write) -> None:
    defaults = Defaults(25, port_names=DEFAULTS.port_names, p4runtime="{switch}.rack:1")
    found = _rack(write).specification(defaults)
    assert [switch.p4runtime for switch in found.switches] == ["leaf-2.example:9559", "leaf-1.rack:1"]


def test_what_no_source_says_is_asked_for_by_name(write: Write, tmp_path: Path) -> None:
    without = "\n".join(line for line in ADDRESSES.splitlines() if ".11/" not in line and "::" not in line)
    assert _failures(_rack(write, addresses=without), tmp_path) == [
        "cables.csv: line 3: expected the number of port leaf-2:Ethernet1/1, by which P4Runtime knows it; add"
        " --port-names or a row to --interfaces",
        "cables.csv: line 2: expected the number of port leaf-1:Ethernet1/1, by which P4Runtime knows it; add"
        " --port-names or a row to --interfaces",
        "cables.csv: line 2: expected an address of gpu-1:ens1; add a row to --addresses",
        "cables.csv: line 3: expected the speed of this cable; add --gbps, or speeds to --interfaces",
    ]


def test_problems_of_the_whole_are_told_at_the_lines_that_they_come_from(write: Write, tmp_path: Path) -> None:
    cables = CABLES + "gpu-2,,ens2,leaf-2,,Ethernet1/1,,\ngpu-3,,ens3,leaf-2,,Ethernet1/9999,,\n"
    addresses = (
        ADDRESSES
        + "192.168.7.11/26,gpu-2,ens2,\n192.168.7.64/26,gpu-3,ens3,\n192.168.7.99/26,gpu-1,ens1,\n10.1.1.1,gpu-1,x,\n"
    )
    draft = _rack(write, cables, addresses, DEVICES + "gpu-3;server;;;\n")
    assert sorted(_failures(draft, tmp_path, DEFAULTS)) == [
        "cables.csv: line 6: ends[1]: expected a port that cables.csv: line 3 has not taken, got 'leaf-2:Ethernet1/1'",
        "cables.csv: line 7: number: expected less than or equal to 509, got 9999",
        "ips.csv: line 7: expected another address than that of ips.csv: line 3, got '192.168.7.11'",
        "ips.csv: line 8: expected the address of a NIC, this is that of its subnet or of all its NICs,"
        " got '192.168.7.64/26'",
        "ips.csv: line 9: expected one address of gpu-1:ens1, ips.csv: line 3 has 192.168.7.11/26",
    ]


def test_tables_that_cannot_be_read_are_refused_all_at_once(write: Write, tmp_path: Path) -> None:
    draft = Draft()
    roles = netbox.Roles(frozenset(["leaf"]))
    cables = CABLES.replace("speed", "sped") + "gpu-1,x\n"
    devices = DEVICES + "leaf-3\n;leaf;;;\nleaf-1;leaf;;;x\n"
    netbox.add_cabling(draft, write("cables.csv", cables), write("devices.csv", devices), roles)
    netbox.add_addresses(draft, [write("ips.csv", "address,device\n1.2.3.4/8,gpu-1\n"), tmp_path / "none.csv"])
    netbox.add_interfaces(draft, [write("interfaces.csv", 'device,name,speed\nleaf-1,"Ethernet1/1,fast\n')])
    netbox.add_interfaces(draft, [write("others.csv", "device,name,speed\nleaf-1,Ethernet1/1,fast\nleaf-1,,1\n")])
    assert _failures(draft, tmp_path) == [
        "cables.csv: line 1: unknown column 'sped'; expected one of gbps, side_a_device, side_a_name, side_a_type,"
        " side_b_device, side_b_name, side_b_type, speed",
        "devices.csv: line 7: expected 5 cells as in the header, got 1",
        "devices.csv: line 8: name: expected something in this cell",
        "devices.csv: line 9: node_id: expected a number, got 'x'",
        "devices.csv: line 9: expected each name once, 'leaf-1' is in devices.csv: line 3",
        "ips.csv: line 1: expected a column interface",
        "none.csv: cannot be read: No such file or directory",
        "interfaces.csv: line 2: not CSV: unexpected end of data",
        "others.csv: line 2: speed: expected a number, got 'fast'",
        "others.csv: line 3: name: expected something in this cell",
    ]


def test_a_cable_of_a_device_that_nobody_lists_is_refused(write: Write, tmp_path: Path) -> None:
    cables = CABLES + "gpu-9,,ens1,leaf-1,,Ethernet1/3,,\ngpu-1,,mgmt,console,,eth0,,\n"
    assert _failures(_rack(write, cables), tmp_path, DEFAULTS) == [
        "cables.csv: line 6: expected a device that is known, got 'gpu-9'"
    ]


def test_ipv6_alone_is_refused_by_name(write: Write, tmp_path: Path) -> None:
    addresses = ADDRESSES.replace("192.168.7.11/26", "2001:db8::11/64")
    assert _failures(_rack(write, addresses=addresses), tmp_path, DEFAULTS) == [
        "ips.csv: line 2: IPv6 is not supported: '2001:db8::11', got '2001:db8::11/64'"
    ]


def test_ten_thousand_mistakes_are_told_at_once(write: Write, tmp_path: Path) -> None:
    rows = "".join(f"gpu-{number},,ens1,leaf-1,,Ethernet1/{number},,\n" for number in range(3, 10_003))
    draft = Draft()
    netbox.add_cabling(draft, write("cables.csv", CABLES + rows), None, netbox.Roles(switches=("leaf*",)))
    messages = _failures(draft, tmp_path, DEFAULTS)
    assert sum("expected an address" in message for message in messages) == 10_002
    assert sum("expected less than or equal to 509" in message for message in messages) == 10_002 - 509


def test_a_lab_says_nodes_links_and_addresses(write: Write) -> None:
    draft = Draft()
    add_lab(draft, write("lab.clab.yml", LAB))
    found = draft.specification(Defaults(gbps=10, port_names=PortNames.of(["eth{number}"])))
    fabric = _read_back(fabric_file(found))
    assert (fabric.switches, fabric.hosts) == (("leaf1", "leaf2"), ("gpu1", "gpu2", "gpu3"))
    assert [cable.ends for cable in fabric.cables] == [
        ("gpu1", "leaf1"),
        ("gpu2", "leaf2"),
        ("leaf1", "leaf2"),
        ("gpu3", "leaf2"),
    ]
    assert [str(fabric.nics[host][0].address) for host in fabric.hosts] == [f"192.168.7.1{each}" for each in (1, 2, 3)]
    assert str(fabric.nics["gpu2"][0].mac) == "aa:c1:ab:00:00:02"
    assert found.switches[0].management == "172.20.20.11"


def test_links_that_are_no_cables_are_refused_with_their_key_path(write: Write, tmp_path: Path) -> None:
    lab = """
    topology:
      nodes: {a: {kind: bridge}, b: {}, c: {kind: linux}, c: {kind: linux}}
      links:
        - {type: host, endpoint: {node: c, interface: eth1}}
        - endpoints: [c:eth1]
        - endpoints: [c:eth2, d:eth1]
        - endpoints: [c, {node: c}]
    """
    draft = Draft()
    add_lab(draft, write("lab.yml", lab))
    assert _failures(draft, tmp_path) == [
        "lab.yml: topology.nodes.c: expected once, repeated in line 3",
        "lab.yml: topology.nodes.a.kind: expected a host, or a switch that can be controlled, got 'bridge'",
        "lab.yml: topology.nodes.b.kind: missing; neither the node nor its group nor defaults has one",
        "lab.yml: topology.links[0].type: expected veth, a link between two nodes, got 'host'",
        "lab.yml: topology.links[1].endpoints: expected two ends, got 1",
        "lab.yml: topology.links[2] c:eth2 to d:eth1: expected a device that is known, got 'd'",
        "lab.yml: topology.links[3].endpoints[0]: expected a node and its interface, as leaf:eth1",
        "lab.yml: topology.links[3].endpoints[1]: expected a node and its interface, as leaf:eth1",
    ]


@pytest.mark.parametrize("text", ["topology: 3", "[]", "topology: {nodes: [], links: {}}"])
def test_a_file_that_is_no_lab_is_refused(text: str, write: Write, tmp_path: Path) -> None:
    draft = Draft()
    add_lab(draft, write("lab.yml", text))
    assert _failures(draft, tmp_path) == [
        "lab.yml: topology.nodes: expected at least one, there is none",
        "lab.yml: topology.links: expected at least one, there is none",
    ]


def test_names_of_ports_tell_their_numbers_by_rules() -> None:
    rules = PortNames.of(["Ethernet1/{number}", "swp{number}s0"])
    names = ("Ethernet1/7", "swp12s0", "44", "Ethernet1/7/1", "swp12", "Ethernet1/x", "٣")
    assert [rules.number(name) for name in names] == [7, 12, 44, None, None, None, None]
    for rule in ("Ethernet", "{number}/{number}"):
        with pytest.raises(ValueError, match="once, as Ethernet1/"):
            PortNames.of([rule])


_CELLS = st.sampled_from(
    ["gpu-1", "leaf-1", "ens1", "Ethernet1/1", "7", "-1", "nan", "", " ", "a:b", "1.2.3.4/24", "x/y"]
)
_ROWS = st.lists(st.lists(_CELLS | st.text(max_size=5), min_size=1, max_size=8), max_size=6)


@settings(max_examples=150, deadline=None)
@given(st.lists(_ROWS, min_size=4, max_size=4), st.sampled_from(",;\t|"))
@example([[], [], [], [['"', '"0']]], "\t")
def test_whatever_tables_hold_is_a_fabric_or_is_refused(tables: list[list[list[str]]], delimiter: str) -> None:
    headers = [each.partition("\n")[0].split(",") for each in (CABLES, "name,role,node_id", ADDRESSES, INTERFACES)]
    draft = Draft()
    with TemporaryDirectory() as folder:
        paths = [Path(folder, str(number)) for number in range(4)]
        for path, header, rows in zip(paths, headers, tables, strict=True):
            text = "\n".join(delimiter.join(row) for row in (header, *rows))
            path.write_text(text, encoding="utf-8", errors="replace")
        netbox.add_cabling(draft, paths[0], paths[1], netbox.Roles(switches=("leaf*",)))
        netbox.add_addresses(draft, [paths[2]])
        netbox.add_interfaces(draft, [paths[3]])
    messages: tuple[str, ...] | None = None
    try:
        draft.specification(DEFAULTS).build()
    except ImportFailedError as error:
        messages = error.messages
    assert messages is None or (messages and all(message.isprintable() for message in messages))
