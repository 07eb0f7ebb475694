"""What is remembered of one fabric, on another one."""

from dataclasses import replace

from controller.planning.interventions import HandPin
from controller.reload.refit import refitted_pins
from topologies.expanding import expanded
from topologies.fabric_match import FabricMatch
from topologies.fabric_specification import FabricSpecification
from topologies.specification import ClosSpecification

CLOS = ClosSpecification(
    kind="clos", tors=2, aggs=1, hosts_per_tor=1, uplinks_per_pair=3, host_link_gbps=10, uplink_gbps=10
)


def test_a_pin_stays_on_its_cable_where_one_beside_it_goes() -> None:
    before = expanded(CLOS.build())
    uplinks = [cable for cable in before.cables if any(end.startswith("a0:") for end in cable.ends)]
    first = next(cable for cable in uplinks if any(end.startswith("t0:") for end in cable.ends))
    after = FabricSpecification.model_validate(
        before.model_dump(mode="json")
        | {"cables": [cable.model_dump(mode="json") for cable in before.cables if cable != first]}
    )
    match = FabricMatch(before.build(), after.build())
    level, gone, stays = (
        HandPin("gpt", 3, None, 0.0, 1.0, ""),
        HandPin("gpt/ring/0", None, "h0>t0.0>a0.2>t1>h1", 0.0, 1.0, ""),
        HandPin("gpt/ring/1", None, "h0>t0.1>a0.2>t1>h1", 0.0, 1.0, ""),
    )
    unknown = HandPin("gpt/ring/2", None, "h0>t7>h1", 0.0, 1.0, "")
    assert refitted_pins([level, gone, stays, unknown], match) == {
        level: level,
        gone: None,
        # The same cable is now the first one.
        stays: replace(stays, path="h0.0>t0.0>a0.2>t1.0>h1"),
        unknown: unknown,
    }
