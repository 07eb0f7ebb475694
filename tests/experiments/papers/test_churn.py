import pytest

from experiments.papers.churn import VARIANTS, Churn, ChurnCase, PerEvent
from experiments.papers.job_events import EventChange
from experiments.papers.random_jobs import FabricName

CALM = EventChange(1, 2, 3, 0, 0, 0, 0.8)
BUSY = EventChange(10, 20, 30, 40, 5, 6, 0.6)
EMPTY = EventChange(0, 0, 1, 0, 0, 0, None)


def test_all_events_of_all_seeds_have_equal_weight() -> None:
    first, second = (ChurnCase("crux", FabricName.TESTBED, seed, 2) for seed in (1, 2))
    found = Churn().combine([first, second], {second: (BUSY,), first: (CALM, CALM, EMPTY)})
    assert (found.seeds, found.num_events) == ((1, 2), 4)
    assert (found.inserted, found.modified, found.deleted) == (3.0, 6.0, 9.25)
    assert found.rules == PerEvent(18.25, 6.0, pytest.approx(58.38))
    assert found.of_staying_jobs.mean == 10.0
    assert (found.moved_flows.p50, found.level_changes.mean) == (0.0, 1.5)
    assert found.modelled_gpu_utilisation == pytest.approx((0.8 + 0.8 + 0.6) / 3)
    assert Churn().json_object(found)["rules"] == {"mean": 18.25, "p50": 6.0, "p99": pytest.approx(58.38)}


def test_the_cost_of_damping_refers_to_the_same_fabric() -> None:
    cells = [(FabricName.TESTBED, "trainyard, 0%", 0.8), (FabricName.TESTBED, "trainyard, 1%", 0.75)]
    cells += [(FabricName.FEWER_UPLINKS, "trainyard, 1%", 0.5), (FabricName.TESTBED, "ecmp", None)]
    results = {
        ChurnCase(variant, fabric, 1, 1): (EventChange(1, 0, 0, 0, 0, 0, modelled),)
        for fabric, variant, modelled in cells
    }
    found = Churn().findings([Churn().combine([case], results) for case in results])
    assert {variant for _, variant, _ in cells} <= VARIANTS.keys()
    tables = found.tables
    assert [row[1:] for row in tables[-1].rows] == [
        ("trainyard, 0%", "80.0\N{NO-BREAK SPACE}%", "0.00"),
        ("trainyard, 1%", "75.0\N{NO-BREAK SPACE}%", "\N{MINUS SIGN}5.00"),
        ("trainyard, 1%", "50.0\N{NO-BREAK SPACE}%", "\N{EN DASH}"),
    ]
    assert [len(table.rows) for table in tables] == [4, 4, 3]
    assert all(len(row) == len(table.columns) for table in tables for row in table.rows)
    assert [chart.title.partition(":")[0] for chart in found.charts] == ["fig20", "fewer-uplinks"]
