"""A private Open vSwitch for tests; a test is skipped, and says so, where Open vSwitch is not installed.

    with running_openvswitch() as switch:
        add_dummy_bridge(switch, "t0", datapath_id=1, ports=[1, 2])

Bridges with the datapath ``dummy`` need neither root nor interfaces: packets are given by ``ofproto/trace`` or
``netdev-dummy/receive``.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from topologies.openvswitch.daemons import OpenVSwitch, missing_programs


@contextmanager
def running_openvswitch(*, has_dummies: bool = True) -> Iterator[OpenVSwitch]:
    """An Open vSwitch for as long as the context lasts."""
    skip_without_openvswitch()
    with OpenVSwitch(has_dummies=has_dummies) as switch:
        yield switch


def skip_without_openvswitch() -> None:
    """Skip the test where Open vSwitch is not installed."""
    if missing := missing_programs():
        pytest.skip(f"{', '.join(missing)} not found: nothing is tried with Open vSwitch")


def add_dummy_bridge(
    switch: OpenVSwitch, name: str, datapath_id: int, ports: Iterable[int], *settings: str, controller: str = ""
) -> None:
    """Add a bridge with ports that have no interfaces, which forwards nothing on its own.

    Port n is called ``NAME-n``. ``settings`` are columns of the bridge, such as ``fail_mode=standalone``; controller is
    a target such as ``tcp:127.0.0.1:6653`` or ``ptcp:0:127.0.0.1``.
    """
    columns = [
        "datapath_type=dummy",
        "protocols=OpenFlow13,OpenFlow15",
        "fail_mode=secure",
        "other-config:disable-in-band=true",
        f"other-config:datapath-id={datapath_id:016x}",
        *settings,
    ]
    words = ["add-br", name, "--", "set", "bridge", name, *columns]
    for port in ports:
        interface = f"{name}-{port}"
        words += ["--", "add-port", name, interface]
        words += ["--", "set", "interface", interface, "type=dummy", f"ofport_request={port}"]
    if controller:
        words += ["--", "set-controller", name, controller, "--", "set", "controller", name, "max_backoff=1000"]
    switch.vsctl(*words)
