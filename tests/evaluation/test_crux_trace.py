from pathlib import Path

import numpy as np
import pytest

from controller.evaluation.crux_trace import PUBLISHED, findings
from controller.evaluation.trace_cases import TraceCase
from controller.policy.enforcement import Enforcement
from controller.policy.policy_name import PolicyName
from controller.trace_run.results import Counts, GpuSeries, TraceJobResult, TraceResult
from workloads.schedulers.scheduler_name import Scheduler

DASH = "\N{EN DASH}"


def made_up_case(policy: PolicyName, scheduler: Scheduler) -> TraceCase:
    return TraceCase(Path("trace"), Path("assumptions.yaml"), policy, scheduler, 1, None)


def made_up_result(policy: PolicyName, computing: float, end_s: float | None = 200.0) -> TraceResult:
    """Of 10 GPUs all are allocated in the first interval, and one in the second; there it computes."""
    return TraceResult(
        policy=policy,
        enforcement=Enforcement.LEVELS,
        seed=1,
        gpus=20,
        ended_s=1200.0,
        jobs=(TraceJobResult("a", "GPT", 10, 0.0, 0.0, end_s, 100.0),),
        num_waiting=0,
        computed_gpu_s=600.0 * (computing + 1),
        allocated_gpu_s=600.0 * 11,
        series=GpuSeries(600.0, np.array([computing, 1.0]), np.array([10.0, 1.0])),
        counts=Counts(),
    )


def test_gains_stand_beside_the_papers_by_both_readings() -> None:
    results = {
        made_up_case(PolicyName.SINCRONIA, Scheduler.RANDOM): made_up_result(PolicyName.SINCRONIA, 4.5),
        made_up_case(PolicyName.CRUX, Scheduler.RANDOM): made_up_result(PolicyName.CRUX, 10.0),
        made_up_case(PolicyName.ECMP, Scheduler.RANDOM): made_up_result(PolicyName.ECMP, 10.0, end_s=None),
        made_up_case(PolicyName.CRUX, Scheduler.AFFINITY): made_up_result(PolicyName.CRUX, 10.0),
    }
    found = findings(results, "made up", "clos", ("assumed",))
    tables = {table.title: table for table in found.tables}
    gains = tables["What crux gains, in points, placed by random"]
    assert gains.rows == (("ecmp", "0.0", "0.0", DASH), ("sincronia", "+50.0", "+27.5", "+23.0"))
    # Alone it gains over nobody.
    assert "What crux gains, in points, placed by affinity" not in tables
    used = tables["GPU utilisation, placed by random"]
    assert used.rows[2][:5] == ("sincronia", *(f"{number}\N{NO-BREAK SPACE}%" for number in (50.0, 39.0, 72.5, 24.3)))
    slowed = tables["Slowdown of jobs, placed by random"]
    assert slowed.rows[0][1:4] == ("0", DASH, DASH)
    assert slowed.rows[1][1:4] == ("1", "2.000", "2.000")
    assert findings(results, "made up", "star", ()).tables[0].rows[0][2] == DASH


@pytest.mark.parametrize(("topology", "least", "most"), [("clos", 13, 23), ("double_sided", 4, 7)])
def test_the_papers_gains_are_those_of_its_text(topology: str, least: int, most: int) -> None:
    printed = PUBLISHED[topology].printed
    others = (PolicyName.SINCRONIA, PolicyName.TACCL_STAR, PolicyName.CASSINI)
    gains = {round(100 * (printed[PolicyName.CRUX] - printed[policy])) for policy in others}
    assert (min(gains), max(gains)) == (least, most)
