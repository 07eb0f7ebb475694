"""Everything that the benchmark of OpenFlow has a budget for is measured with a real Open vSwitch."""

import pytest

from benchmarks.openflow import BUDGETS, Sizes, measure
from benchmarks.openflow_cases.messages import entries
from tests.openvswitch import skip_without_openvswitch
from tests.topologies.namespaces.conftest import skip_unless_permitted

SMALL = Sizes(
    flows=200, rounds=2, seeds=1, link_downs=2, kills=1, failovers=4, failover_flows=200, clos_seeds=1, clos_s=6
)


@pytest.mark.slow
def test_every_budget_has_a_figure() -> None:
    skip_without_openvswitch()
    skip_unless_permitted(())
    found = measure(SMALL)
    for budget in BUDGETS:
        assert isinstance(found[budget.figure], int | float)
    assert {"flow_mods_prebuilt_per_s_1_3", "read_back_10k_s_1_3"} <= found.keys()
    for figure in ("packets_sent", "updates_of_difference", "stale_writes"):
        assert isinstance(count := found[figure], int)
        assert count > 0
    for figure in ("packets_lost_by_kill", "updates_beyond_difference", "stale_writes_accepted"):
        assert found[figure] == 0


def test_without_open_vswitch_the_rest_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.openflow.missing_programs", lambda: ["ovs-vswitchd"])
    found = measure(Sizes(flows=10, rounds=1))
    assert found["openvswitch"] == "not measured: ovs-vswitchd not found"
    assert "flow_mods_encoded_per_s" in found


def test_no_two_flows_have_the_same_entry() -> None:
    assert len({entry.key for entry in entries(40_000)}) == 40_000
