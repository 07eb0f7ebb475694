"""What a change between two fabrics is called, and what keeps a controller from it."""

from controller.reload.fabric_check import switch_problems
from controller.reload.words import fabric_lines
from controller.switch_addresses import SwitchAddress
from tests.topologies.mixing import with_tofinos
from topologies.expanding import expanded
from topologies.fabric import Fabric
from topologies.fabric_match import FabricMatch
from topologies.fabric_specification import FabricSpecification
from topologies.openflow_specification import OpenFlowSpecification
from topologies.specification import DumbbellSpecification

DUMBBELL = DumbbellSpecification(kind="dumbbell", hosts_per_side=2, host_link_gbps=4, bottleneck_gbps=1)
DOCUMENT = expanded(DUMBBELL.build()).model_dump(mode="json")


def fabric(device_id: int = 1, number: int = 3) -> Fabric:
    """The fabric with another device id of its first switch, and another number of that one's last port."""
    first, *others = DOCUMENT["switches"]
    ports = [{"name": f"p{each}", "number": number if each == 3 else each} for each in (1, 2, 3)]
    switch = {**first, "device_id": device_id, "ports": ports}
    cables = [{**cable, "ends": [end.replace("t0:", "t0:p") for end in cable["ends"]]} for cable in DOCUMENT["cables"]]
    document = {**DOCUMENT, "switches": [switch, *others], "cables": cables}
    return FabricSpecification.model_validate(document).build()


def test_cables_that_only_port_numbers_tell_apart_are_told_with_these() -> None:
    assert list(fabric_lines(FabricMatch(fabric(), fabric(number=9)))) == [
        "topology: cables removed: t0:p3 - t1:3 (t0 port number 3, t1 port number 3)",
        "topology: cables added: t0:p3 - t1:3 (t0 port number 9, t1 port number 3)",
    ]


def test_a_device_id_is_told_once() -> None:
    before, after = (
        [SwitchAddress(name=name, address="127.0.0.1:9559", device_id=number) for name, number in numbers.items()]
        for numbers in ({"t0": 1, "t1": 2}, {"t0": 7, "t1": 2})
    )
    match = FabricMatch(fabric(device_id=1), fabric(device_id=7))
    assert list(switch_problems(match, before, after)) == ["switches: t0 would have device_id 7, not 1"]


def test_another_target_needs_a_restart() -> None:
    addresses = [SwitchAddress(name=name, address="127.0.0.1:9559") for name in ("t0", "t1")]
    match = FabricMatch(fabric(), with_tofinos(fabric(), {"t1"}))
    assert list(switch_problems(match, addresses, addresses)) == [
        "topology: t1 would have target tofino, not bmv2, which needs a restart"
    ]


def test_the_first_switch_of_another_protocol_needs_a_restart() -> None:
    match = FabricMatch(fabric(), fabric())
    by_p4 = [SwitchAddress(name=name, address="127.0.0.1:9559") for name in ("t0", "t1")]
    by_openflow = [
        SwitchAddress(name=name, openflow=OpenFlowSpecification(datapath_id=number))
        for number, name in enumerate(("t0", "t1"), start=1)
    ]
    assert list(switch_problems(match, by_p4[:1], [by_p4[0], by_openflow[1]])) == [
        "switches: t1 would be the first that speaks OpenFlow, which needs a restart"
    ]
    assert list(switch_problems(match, by_openflow[:1], [by_openflow[0], by_p4[1]])) == [
        "switches: t1 would be the first that speaks P4Runtime, which needs a restart"
    ]
    assert not list(switch_problems(match, [by_p4[0], by_openflow[1]], by_p4[:1]))
    assert not list(switch_problems(match, by_openflow[:1], by_openflow))
