"""How fast the simulator is: ``python benchmarks/simulator.py FILE [--json]``.

FILE is FB2010-1Hr-150-0.txt of github.com/coflow/coflow-benchmark: 526 coflows of 706,397 flows on 150 racks. Every
figure is processor time of one core, reading the file included; what compiling has taken before is ``compilation_s``.
Beside the times stand the completion times, which are the same on any machine.
"""

import argparse
import sys
import time
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.provenance import print_figures, provenance
from simulator.coflow_options import CoflowPolicy, Recompute
from simulator.coflows import run_coflows
from workloads.coflow_trace import parse_coflow_trace

PORT_BPS = 2.0**30
SMALL_TRACE = "3 2\na 0 1 0 2 1:5 2:3\nb 10 2 0 1 1 1:4\n"

RUNS = {
    "coflow_varys": (CoflowPolicy.VARYS, Recompute.COFLOW),
    "coflow_varys_flow": (CoflowPolicy.VARYS, Recompute.FLOW),
    "coflow_fair": (CoflowPolicy.FAIR, Recompute.FLOW),
    "coflow_sincronia_flow": (CoflowPolicy.SINCRONIA, Recompute.FLOW),
    "coflow_fifo_flow": (CoflowPolicy.FIFO, Recompute.FLOW),
}


def measure(path: Path) -> dict[str, object]:
    """Every run once, after all has been compiled."""
    start_s = time.process_time()
    for policy, recompute in RUNS.values():
        run_coflows(parse_coflow_trace(SMALL_TRACE), policy, recompute, PORT_BPS)
    figures: dict[str, object] = {"compilation_s": round(time.process_time() - start_s, 2)}
    for name, (policy, recompute) in RUNS.items():
        start_s = time.process_time()
        run = run_coflows(parse_coflow_trace(path.read_text()), policy, recompute, PORT_BPS)
        figures |= {
            f"{name}_s": round(time.process_time() - start_s, 2),
            f"{name}_average_cct_s": round(run.average_cct_s, 4),
            f"{name}_p95_cct_s": round(run.p95_cct_s, 4),
            f"{name}_makespan_s": round(run.makespan_s, 4),
        }
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    print_figures(measure(arguments.file) | provenance(("numba", "numpy", "scipy")), as_json=arguments.json)


if __name__ == "__main__":
    main()
