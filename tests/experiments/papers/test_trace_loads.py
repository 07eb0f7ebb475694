from pathlib import Path

import pytest

from experiments.papers.trace_loads import LoadCase, LoadResult, TraceLoads, closed
from experiments.papers.traces import TraceSource, TraceTopology
from workloads.schedulers.catalogue import Scheduler

DASH, SPACE = "\N{EN DASH}", "\N{NO-BREAK SPACE}"


def case(load: float, seed: int, policy: str) -> LoadCase:
    return LoadCase(
        TraceSource(Path("trace"), seed, None, TraceTopology.THIN_CLOS), Scheduler.RANDOM, 1.0, load, policy
    )


def result(utilisation: float, bound: float = 0.8, worst: float = 2.0) -> LoadResult:
    return LoadResult(1.0, utilisation, 0.9, bound, (1.0, worst))


def test_the_closed_share_refers_to_cruxs_gap_of_the_same_seed() -> None:
    assert closed(result(0.6), result(0.7)) == pytest.approx(0.5)
    assert closed(result(0.6), result(0.5)) == pytest.approx(-0.5)
    assert closed(result(0.8), result(0.8)) is None
    crux, ours = "crux", "trainyard"
    results = {
        case(0.6, 1, crux): result(0.6, worst=3.0),
        case(0.6, 1, ours): result(0.7),
        case(0.6, 2, crux): result(0.4),
        case(0.6, 2, ours): result(0.5, worst=4.0),
        case(1.0, 1, crux): result(0.5),
        case(1.0, 1, ours): result(0.5),
        case(1.0, 2, ours): result(0.5),
    }
    low, high, everywhere = TraceLoads().findings(list(results.items())).tables
    assert [row[:3] for row in low.rows] == [("crux", "2", f"50.00{SPACE}%"), ("trainyard", "2", f"60.00{SPACE}%")]
    assert [row[5:] for row in low.rows] == [
        ("30.00", "2.48", "3.00", f"0.0{SPACE}%"),
        ("20.00", "2.98", "4.00", f"37.5{SPACE}%"),
    ]
    assert [row[-1] for row in high.rows] == [f"0.0{SPACE}%"] * 2
    assert everywhere.rows == (("trainyard", f"25.0{SPACE}%"),)


def test_without_crux_there_is_no_closed_share() -> None:
    results = {case(0.6, 1, "ecmp"): result(0.6)}
    assert [table.rows[0][-1] for table in TraceLoads().findings(list(results.items())).tables] == [DASH, DASH]


def test_json_describes_the_run() -> None:
    found = TraceLoads().json_object((case(1.5, 3, "crux"), result(0.6, worst=3.0)))
    assert (found["load"], found["seed"], found["policy"], found["topology"]) == (1.5, 3, "crux", "thin-clos")
    assert found["slowdown"] == pytest.approx({"p50": 2.0, "p99": 2.98, "worst": 3.0})
