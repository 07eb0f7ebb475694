"""The script that ``trainyard qos ovs`` prints does what it says on a real Open vSwitch."""

import subprocess

import pytest

from tests.namespaces import namespaces
from tests.openvswitch import skip_without_openvswitch
from tests.patience import PATIENCE_S
from topologies.addressing import Address, Interface
from topologies.fabric import Cable, Fabric, SwitchIdentity
from topologies.openvswitch.daemons import ALONE, OpenVSwitch
from topologies.openvswitch.printed_queues import openvswitch_queues
from topologies.sonic_qos import UnnamedPortError


def _fabric(*names: tuple[int, str]) -> Fabric:
    """Two hosts at one switch, whose ports 1 and 4 have cables."""
    cables = (Cable(("h0", "leaf"), 1e8, 0.0, (0, 1)), Cable(("h1", "leaf"), 5e7, 0.0, (0, 4)))
    nics = tuple((Interface(None, Address.parse(f"10.0.{host}.1"), 24, None),) for host in range(2))
    return Fabric(("h0", "h1"), ("leaf",), cables, 1, None, nics, (SwitchIdentity(1, 1, names),))


def test_the_script_gives_every_port_its_rate_and_eight_queues() -> None:
    skip_without_openvswitch()
    script = openvswitch_queues(_fabric((1, "swp1"), (4, "swp4")), "leaf")
    with namespaces("switch", "hosts") as made:
        for port in ("swp1", "swp4"):
            made.cable(("switch", port), ("hosts", port))
        with OpenVSwitch(made.command("switch", *ALONE), has_dummies=True) as switch:
            switch.vsctl("add-br", "leaf", "--", "set", "bridge", "leaf", "datapath_type=dummy")
            switch.vsctl("add-port", "leaf", "swp1", "--", "add-port", "leaf", "swp4")
            for _ in range(2):  # it may run again
                done = subprocess.run(
                    made.command("switch", "sh", "-e"),
                    input=script.replace("ovs-vsctl", f"ovs-vsctl --db=unix:{switch.database_socket}"),
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE_S,
                    check=False,
                )
                assert (done.returncode, done.stderr) == (0, "")
            switch.restart_switch()
            for port, rate in (("swp1", "100Mbit"), ("swp4", "50Mbit")):
                shown = made.run("switch", "tc", "class", "show", "dev", port)
                assert shown.count("class htb") == 9
                assert shown.count(f"ceil {rate}") == 9


@pytest.mark.parametrize("names", [((1, "swp1"),), ((1, "swp1"), (4, "et-0/0/1")), ((1, "swp1"), (4, "a; reboot"))])
def test_a_port_that_has_no_name_of_an_interface_is_told(names: tuple[tuple[int, str], ...]) -> None:
    with pytest.raises(UnnamedPortError, match=r"^switch leaf: port 4 has no name; Open vSwitch knows ports by names$"):
        openvswitch_queues(_fabric(*names), "leaf")
