from experiments.papers.crux_schedulers import CruxSchedulers
from tests.experiments.papers.trace_results import made_up_case, made_up_result
from workloads.schedulers.catalogue import Scheduler

DASH = "\N{EN DASH}"


def test_an_incomplete_scheduler_has_no_gain() -> None:
    results = {
        made_up_case(policy, scheduler): made_up_result(policy, computing)
        for policy, scheduler, computing in (
            ("ecmp", Scheduler.HIVED, 4.5),
            ("crux", Scheduler.HIVED, 10.0),
            ("ecmp", Scheduler.AFFINITY, 10.0),
        )
    }
    weighted, over_time = CruxSchedulers().findings(list(results.items())).tables
    assert [row[0] for row in weighted.rows] == ["affinity", "hived"]
    assert [row[3] for row in weighted.rows] == [DASH, "+50.0"]
    assert [row[3] for row in over_time.rows] == [DASH, "+27.5"]
    assert [row[6] for row in weighted.rows] == ["+23.0", "+11.0"]
