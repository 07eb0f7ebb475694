"""How soon an attached job is registered, and its level in force: a DDP job between namespaces, beside a stand-in."""

import json
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.torch_jobs import registering_rank
from experiments.scenarios.backend import Backend, run_on
from workloads.scenario import Scenario

Figures = dict[str, object]


def registration_figures(runs: int, *, is_real_time: bool) -> Figures:
    """Measure in so many runs."""
    found = [_measured(is_real_time=is_real_time) for _ in range(runs)]
    return {name: statistics.median(each[name] for each in found) for name in found[0]} | {"registration_runs": found}


def _measured(*, is_real_time: bool) -> dict[str, float]:
    """Run the job once. Raises RuntimeError where it was never registered."""
    with tempfile.TemporaryDirectory(prefix="trainyard-") as folder:
        file = Path(folder, "figures.json")
        scenario = Scenario.model_validate(_scenario(file))
        result = run_on(
            Backend.NAMESPACES, scenario, "crux", is_real_time=is_real_time, on_progress=lambda _now_s, _end_s: None
        )
        if not file.exists():
            failures = [job.failure for job in result.jobs if job.failure is not None]
            raise RuntimeError(f"the job was never registered: {'; '.join(failures) or 'no level'}")
        return dict(json.loads(file.read_text()))


def _scenario(file: Path) -> dict[str, object]:
    size_bytes = 2e9
    command = [sys.executable, "-P", registering_rank.__file__, str(file)]
    return {
        "name": "registration",
        "topology": {
            "kind": "dumbbell",
            "hosts_per_side": 2,
            "gpus_per_host": 1,
            "host_link_gbps": 100,
            "bottleneck_gbps": 100,
        },
        "jobs": [
            {
                "name": "attached",
                "hosts": ["h0", "h2"],
                "gpus_per_host": 1,
                "duration_s": 60.0,
                "workload": {
                    "type": "command",
                    "command": command,
                    "compute_s": 0.2,
                    "comm_start": 0.5,
                    "bytes": size_bytes,
                    "pattern": "ring",
                },
            },
            {
                "name": "stand-in",
                "hosts": ["h1", "h3"],
                "gpus_per_host": 1,
                "duration_s": 10.0,
                "workload": {
                    "type": "phases",
                    "compute_s": 0.4,
                    "comm_start": 0.5,
                    "bytes": size_bytes,
                    "pattern": "ring",
                },
            },
        ],
    }
