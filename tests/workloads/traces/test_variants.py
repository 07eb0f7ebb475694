"""A variant changes what it names and nothing else."""

import pytest

from topologies.clos import StarSpecification
from topologies.graph import GraphSpecification
from workloads.models import MODELS, ModelName
from workloads.traces.assumptions import Assumptions, load_assumptions
from workloads.traces.variants import Variant, variants_of, varied

SHIPPED = load_assumptions()
LABELS = ("GPT", "mnist", "llama", "unknown")
"""Labels of a table model, of a one-connection model, of a model of the file, and an unknown one."""


def ideal_send_s(assumptions: Assumptions, label: str) -> float:
    return assumptions.model(label, 16).gradient_bytes / assumptions.fabric.rates_bps[0]


@pytest.mark.parametrize(
    ("variant", "computes", "sends"),
    [
        (Variant.AS_ASSUMED, 1.0, 1.0),
        (Variant.HALF_VOLUMES, 1.0, 0.5),
        (Variant.DOUBLE_VOLUMES, 1.0, 2.0),
        (Variant.HALF_COMPUTE, 0.5, 1.0),
        (Variant.DOUBLE_COMPUTE, 2.0, 1.0),
        (Variant.HALF_RATES, 1.0, 2.0),
        (Variant.DOUBLE_RATES, 1.0, 0.5),
        (Variant.QUARTER_UPLINKS, 1.0, 1.0),
        (Variant.LATE_SENDING, 1.0, 1.0),
    ],
)
def test_all_models_compute_and_send_in_proportion(variant: Variant, computes: float, sends: float) -> None:
    other = varied(SHIPPED, variant)
    for label in LABELS:
        before, after = SHIPPED.model(label, 16), other.model(label, 16)
        assert after.compute_s == computes * before.compute_s
        assert ideal_send_s(other, label) == pytest.approx(sends * ideal_send_s(SHIPPED, label))
        assert after.flows_per_pair == before.flows_per_pair
        assert after.comm_start == (1.0 if variant is Variant.LATE_SENDING else before.comm_start)


def test_nothing_changes_as_assumed() -> None:
    assert varied(SHIPPED, Variant.AS_ASSUMED) == SHIPPED


@pytest.mark.parametrize(("variant", "hosts_per_tor"), [(Variant.ONE_HOST_PER_TOR, 1), (Variant.FOUR_HOSTS_PER_TOR, 4)])
def test_hosts_lie_under_more_or_fewer_switches(variant: Variant, hosts_per_tor: int) -> None:
    before, after = SHIPPED.fabric, varied(SHIPPED, variant).fabric
    assert 0 <= len(after.hosts) - len(before.hosts) < hosts_per_tor
    under = [link for link in after.links_from["t0"] if link.destination in after.host_index]
    assert len(under) == hosts_per_tor * len(after.nics["h0"])


def test_uplinks_alone_are_slower() -> None:
    slower = varied(SHIPPED, Variant.HALF_UPLINKS).fabric
    for before, after in zip(SHIPPED.fabric.links, slower.links, strict=True):
        is_uplink = {before.source, before.destination} <= SHIPPED.fabric.switch_index.keys()
        assert after.rate_bps == before.rate_bps * (0.5 if is_uplink else 1.0)


def test_other_labels_have_another_model_whatever_their_size() -> None:
    other = varied(SHIPPED, Variant.OTHERS_BERT)
    assert {other.model("unknown", gpus) for gpus in (1, 16, 512)} == {MODELS[ModelName.BERT]}
    assert other.model("llama", 8) == SHIPPED.model("llama", 8)


def test_a_topology_without_racks_or_uplinks_has_none_that_vary() -> None:
    star = StarSpecification.model_validate({"kind": "star", "hosts": 4, "host_link_gbps": 100})
    possible = set(variants_of(SHIPPED.on(star)))
    assert set(variants_of(SHIPPED)) - possible == {
        *(Variant.HALF_UPLINKS, Variant.QUARTER_UPLINKS, Variant.ONE_HOST_PER_TOR, Variant.FOUR_HOSTS_PER_TOR)
    }


def test_every_rate_of_a_graph_is_scaled_inside_hosts_too() -> None:
    links = [{"ends": [host, "s"], "gbps": gbps} for host, gbps in (("a", 100), ("b", 50))]
    document = {"kind": "graph", "hosts": ["a", "b"], "switches": ["s"], "links": links, "pcie": {"gbps": 80}}
    graph = SHIPPED.on(GraphSpecification.model_validate(document))
    before, after = graph.fabric.rates_bps, varied(graph, Variant.HALF_RATES).fabric.rates_bps
    assert after == tuple(rate / 2 for rate in before)
