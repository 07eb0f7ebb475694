"""What two fabrics have in common."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from topologies.expanding import expanded
from topologies.fabric import Fabric
from topologies.fabric_match import FabricMatch
from topologies.fabric_specification import FabricSpecification
from topologies.specification import ClosSpecification

CLOS = ClosSpecification(
    kind="clos",
    tors=2,
    aggs=2,
    hosts_per_tor=2,
    nics_per_host=2,
    host_link_gbps=10,
    pcie={"nics_per_switch": 1, "gbps": 10},
    uplink_gbps=10,
)


def _shuffled(fabric: Fabric, random: Random, gone: int) -> Fabric:
    """The same fabric with its cables in another order and some turned round, without some of those of switches."""
    document = expanded(fabric).model_dump(mode="json")
    cables = document["cables"]
    random.shuffle(cables)
    for cable in cables:
        if random.random() < 0.5:
            cable["ends"].reverse()
    between = [cable for cable in cables if not any(end.startswith("h") for end in cable["ends"])]
    document["cables"] = [cable for cable in cables if cable not in between[:gone]]
    return FabricSpecification.model_validate(document).build()


@given(st.integers(0, 1 << 32).map(Random), st.integers(0, 1))
def test_links_are_found_by_the_ports_at_their_ends(random: Random, gone: int) -> None:
    before = CLOS.build()
    after = _shuffled(before, random, gone)
    match = FabricMatch(before, after)
    assert (len(match.leaving), match.coming) == (gone, frozenset())
    for old, new in match.links.items():
        one, other = before.link(old), after.link(new)
        assert (one.source, one.destination) == (other.source, other.destination)
    assert len(match.links) == len(before.links) + len(before.host_links) - 2 * gone
    assert match.cables_of(range(len(before.cables))) == set(range(len(after.cables)))
    for cable in match.leaving:
        assert match.path((2 * cable,)) is None
    back = FabricMatch(after, before)
    assert (back.leaving, back.coming) == (frozenset(), match.leaving)
    assert {new: old for old, new in match.links.items()} == back.links
