"""The health of cables goes on where the fabric changes, whatever numbers they have there."""

from controller.links.damping import Damping
from controller.links.link_health import LinkHealth, LinkState
from topologies.expanding import expanded
from topologies.fabric_match import FabricMatch
from topologies.fabric_specification import FabricSpecification
from topologies.specification import ClosSpecification

FABRIC = ClosSpecification(kind="clos", tors=2, aggs=5, hosts_per_tor=1, host_link_gbps=100, uplink_gbps=100).build()


def test_what_is_down_held_or_silent_stays_so() -> None:
    document = expanded(FABRIC).model_dump(mode="json")
    document["cables"] = list(reversed(document["cables"]))[1:]
    after = FabricSpecification.model_validate(document).build()
    match = FabricMatch(FABRIC, after)
    down, held, silent = (FABRIC.links_between("t0", agg)[0] for agg in ("a0", "a1", "a2"))
    before = LinkHealth(FABRIC, Damping())

    def ports(**is_up: bool) -> dict[str, dict[int, bool]]:
        links = {"down": down, "held": held}
        return {"t0": {FABRIC.links[links[name]].source_port: up for name, up in is_up.items()}}

    for now_s in (0.0, 1.0, 2.0):
        before.set_port_states(ports(down=False, held=False), now_s)
        before.set_port_states(ports(down=False, held=True), now_s + 0.5)
    before.set_silent_links({silent}, 3.0)
    health = LinkHealth(after, Damping())
    health.take_over(before, match.cables)
    assert health.failed_links(4.0) == {match.links[link] for link in before.failed_links(4.0)}
    states = {cable.link // 2: cable.state for cable in health.dead_cables(4.0)}
    assert states[match.cables[down // 2]] is LinkState.DOWN
    assert states[match.cables[held // 2]] is LinkState.HELD
    assert health.next_release_s(4.0) == before.next_release_s(4.0)
