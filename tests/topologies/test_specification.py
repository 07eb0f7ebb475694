import pytest

from tests.topologies.builders import TOPOLOGY, refusals
from topologies.specification import ClosSpecification, GraphSpecification

CLOS = {
    "kind": "clos",
    "tors": 6,
    "aggs": 8,
    "hosts_per_tor": 2,
    "gpus_per_host": 8,
    "host_link_gbps": 800,
    "uplink_gbps": 100,
    "uplinks_per_pair": 2,
}
LINKS = [{"ends": ["h0", "s0"], "gbps": 100, "delay_us": 1}, {"ends": ["h1", "s0"], "gbps": 100}]
GRAPH = {
    "kind": "graph",
    "gpus_per_host": 8,
    "hosts": ["h0", "h1"],
    "switches": ["s0"],
    "links": LINKS,
}


def test_kind_decides_what_a_mapping_is() -> None:
    assert isinstance(TOPOLOGY.validate_python(CLOS), ClosSpecification)
    assert isinstance(TOPOLOGY.validate_python(GRAPH), GraphSpecification)


@pytest.mark.parametrize("kind", ["torus", None, 3])
def test_unknown_kinds_are_refused_with_the_known_ones(kind: object) -> None:
    with pytest.raises(ValueError, match="'clos', 'double_sided', 'fat_tree', 'dumbbell', 'star', 'graph'"):
        TOPOLOGY.validate_python({"kind": kind})


@pytest.mark.parametrize("value", [True, "8", 8.5, 8.0, 0, -1, 65_537, None, float("nan")])
@pytest.mark.parametrize("key", ["tors", "aggs", "hosts_per_tor", "uplinks_per_pair", "nics_per_host", "gpus_per_host"])
def test_counts_are_whole_numbers_and_nothing_that_looks_like_one(key: str, value: object) -> None:
    assert refusals(CLOS | {key: value}).keys() == {(key,)}


@pytest.mark.parametrize("value", [True, "100", 0, -1, 1e10, 10**400, None, float("nan"), float("inf")])
@pytest.mark.parametrize("key", ["host_link_gbps", "uplink_gbps"])
def test_rates_are_numbers_that_a_link_can_have(key: str, value: object) -> None:
    assert refusals(CLOS | {key: value}).keys() == {(key,)}


@pytest.mark.parametrize("value", [True, "1", -0.1, 1e7, float("inf")])
def test_delays_are_numbers_of_at_most_a_second(value: object) -> None:
    assert refusals(CLOS | {"delay_us": value}).keys() == {("delay_us",)}
    links = [LINKS[0] | {"delay_us": value}, LINKS[1] | {"gbps": "1"}]
    assert refusals(GRAPH | {"links": links}).keys() == {("links", 0, "delay_us"), ("links", 1, "gbps")}


@pytest.mark.parametrize(("key", "value"), [("nics_per_host", 255), ("gpus_per_host", 1025)])
def test_a_host_is_of_limited_size(key: str, value: int) -> None:
    assert refusals(CLOS | {key: value}).keys() == {(key,)}


def test_unknown_keys_are_refused_by_name() -> None:
    assert refusals(CLOS | {"color": "red", "k": 4}).keys() == {("color",), ("k",)}
    assert refusals(GRAPH | {"nics_per_host": 2}).keys() == {("nics_per_host",)}


def test_accepted_specifications_cannot_change() -> None:
    specification = TOPOLOGY.validate_python(CLOS)
    with pytest.raises(ValueError, match="frozen"):
        specification.gpus_per_host = 4
