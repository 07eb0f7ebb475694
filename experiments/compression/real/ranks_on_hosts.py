"""Eight ranks on the hosts of a star of real ports, at rates divided by a factor."""

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments.compression.conditions import BPS_PER_MBPS, FAST_BPS
from experiments.compression.outcomes import ConfirmationCase
from experiments.compression.real import rank
from experiments.compression.real.plan import RankPlan, Task, TaskResult, results_from_json
from experiments.compression.star import HOSTS, SLOW_HOSTS
from experiments.scenarios.backend import Backend, RunError, run_on
from workloads.scenario import Scenario

_LONGEST_S = 120.0
"""That the ranks may run, before they are slowed. At 200 Mbit/s it took at most 70 s on two cores."""
_GBPS = 1e9


def ran(case: ConfirmationCase, rate_mbps: float, factor: float, tasks: Sequence[Task]) -> list[TaskResult]:
    """Run tasks at one rate, one after the other; times are those of the slowed job.

    Raises:
        RunError: Hosts cannot be made, or a rank has failed.
    """
    with TemporaryDirectory(prefix="trainyard-ranks-") as folder:
        plan_path, results_path = Path(folder, "plan.json"), Path(folder, "results.json")
        plan = RankPlan(case.model, case.bucket_mib, factor * case.compute_s, tuple(tasks), str(results_path))
        plan_path.write_text(plan.to_json())
        scenario = _scenario(case, rate_mbps, factor, plan_path)
        result = run_on(Backend.NAMESPACES, scenario, "ecmp", on_progress=lambda *_: None)
        (job,) = result.jobs
        if job.failure is not None:
            raise RunError(job.failure)
        if not results_path.exists():
            raise RunError(f"the ranks did not end within {factor * _LONGEST_S:g} s")
        return results_from_json(results_path.read_text())


def _scenario(case: ConfirmationCase, rate_mbps: float, factor: float, plan: Path) -> Scenario:
    hosts = [f"h{number}" for number in range(HOSTS)]
    rates_bps = [rate_mbps * BPS_PER_MBPS if number in SLOW_HOSTS else FAST_BPS for number in range(HOSTS)]
    document = {
        "name": "ranks",
        "scale": factor,
        "topology": {
            "kind": "graph",
            "hosts": hosts,
            "switches": ["s0"],
            "links": [
                {"ends": [host, "s0"], "gbps": rate_bps / _GBPS}
                for host, rate_bps in zip(hosts, rates_bps, strict=True)
            ],
            "gpus_per_host": 1,
        },
        "jobs": [
            {
                "name": "ranks",
                "hosts": hosts,
                "gpus_per_host": 1,
                "duration_s": factor * _LONGEST_S,
                "workload": {
                    "type": "command",
                    "command": [sys.executable, "-P", "-m", rank.__name__, str(plan)],
                    "compute_s": case.compute_s,
                    "comm_start": 1,
                    "flows": [{"source": hosts[0], "destination": hosts[1], "bytes": 1.0}],
                },
            }
        ],
    }
    return Scenario.model_validate(document)
