from dataclasses import replace

from experiments.papers.trace_sensitivity import TraceSensitivity
from tests.experiments.papers.trace_results import made_up_case, made_up_result
from workloads.schedulers.catalogue import Scheduler
from workloads.traces.variants import Variant

DASH = "\N{EN DASH}"


def test_incomplete_variants_have_no_gain_and_empty_ones_no_row() -> None:
    results = {
        replace(made_up_case(policy, Scheduler.RANDOM), variant=variant): made_up_result(policy, computing)
        for variant, policy, computing in (
            (Variant.DOUBLE_VOLUMES, "crux", 10.0),
            (Variant.AS_ASSUMED, "ecmp", 4.5),
            (Variant.AS_ASSUMED, "crux", 10.0),
        )
    }
    found = TraceSensitivity().findings(list(results.items()))
    (table,) = found.tables
    assert [(row[0], row[3], row[6]) for row in table.rows] == [
        ("as assumed", "+50.0", "+27.5"),
        ("volumes x2", DASH, DASH),
    ]
    assert len(found.charts[0].bars) == 3
