"""Chakra traces in astra-sim's analytical back ends and in our simulator, iteration times side by side.

    python benchmarks/astra_sim.py --astra-sim PATH --json

PATH, or the variable ASTRA_SIM, is a checkout of astra-sim whose analytical back ends are built as its documentation
says. Its own microbenchmarks are played, and training iterations that are written here. Without it nothing is compared.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import trainyard as ty
from benchmarks.provenance import print_figures, provenance
from benchmarks.training_traces import (
    MEMORY_GB_PER_S,
    PEAK_TFLOPS,
    write_by_operations,
    write_data_parallel,
    write_pipeline,
    write_sharded,
    write_tensor_parallel,
)
from workloads.described.devices import Device

BANDWIDTH_GB_PER_S, LATENCY_NS = 50.0, 500.0
"""Of a link, as in the networks of astra-sim's examples, whose GB is 2**30 bytes."""
LINK_GBPS = BANDWIDTH_GB_PER_S * 2**30 * 8 / 1e9
_BACK_ENDS = ("unaware", "aware")
_ENDPOINT_NS = 1
"""What astra-sim counts at each end of a message; it takes no 0."""
_NO_LIMIT_GB_PER_S = 10**9
"""So fast is memory where reductions should take no time."""
_ROOMY = 64
"""So much wider is what connects a host with a switch that stands for it in a ring."""
_CYCLES = re.compile(r"sys\[\d+\] finished, (\d+) cycles")


@dataclass(frozen=True, slots=True)
class Case:
    """A trace and a network, ``Ring``, ``Switch`` or ``FullyConnected``; collectives are cut into ``chunks``."""

    name: str
    trace: Path
    ranks: int
    network: str
    chunks: int

    @property
    def by_operations(self) -> bool:
        """Whether the trace has operations, and no durations."""
        return self.name.startswith("roofline")


def main() -> int:
    """Print the table; return 2 where astra-sim is not there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--astra-sim", type=Path, default=os.environ.get("ASTRA_SIM"), metavar="PATH")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    checkout = None if arguments.astra_sim is None else Path(arguments.astra_sim)
    missing = _missing(checkout)
    if checkout is None or missing:
        print(f"astra-sim is absent: {missing}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        rows = [compared(case, checkout, Path(name)) for case in cases(checkout, Path(name))]
    figures: dict[str, object] = {"rows": rows, "link_gbps": LINK_GBPS, "latency_ns": LATENCY_NS}
    if arguments.json:
        print_figures({**figures, **provenance(("trainyard",))}, as_json=True)
        return 0
    print(f"{'trace':34} {'network':14} {'chunks':>6} {'unaware':>12} {'aware':>12} {'ours':>12}   ours over each")
    for row in rows:
        unaware_s, aware_s, ours = (row[key] for key in ("unaware_s", "aware_s", "ours_s"))
        times = "".join(f" {each * 1e6:9.1f} us" for each in (unaware_s, aware_s, ours))
        shares = f"{ours / unaware_s - 1:+8.2%} {ours / aware_s - 1:+8.2%}"
        print(f"{row['trace']:34} {row['network']:14} {row['chunks']:6} {times}  {shares}")
    return 0


def cases(checkout: Path, folder: Path) -> Iterator[Case]:
    """Yield what is compared; traces of our own are written into the folder."""
    examples = checkout / "examples" / "workload" / "microbenchmarks"
    for kind in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
        for ranks, network, chunks in (
            (4, "Ring", 1),
            (8, "Ring", 1),
            (16, "Ring", 1),
            (8, "Ring", 4),
            (8, "Switch", 1),
            (8, "FullyConnected", 1),
        ):
            yield Case(f"{kind} 1 MB", examples / kind / f"{ranks}npus_1MB", ranks, network, chunks)
    ring = checkout / "examples/system/custom_collectives/custom_ring_allreduce_8npus_1MB"
    yield Case("all_reduce 1 MB of sends", ring, 8, "Ring", 1)
    for name, write in (
        ("data parallel", write_data_parallel),
        ("tensor parallel", write_tensor_parallel),
        ("sharded", write_sharded),
        ("pipeline", write_pipeline),
        ("roofline", write_by_operations),
    ):
        trace = folder / name.replace(" ", "-")
        write(trace, 4)
        for network, chunks in (("Ring", 1), ("Ring", 4), ("Switch", 1)):
            yield Case(f"{name} iteration", trace, 4, network, chunks)


def compared(case: Case, checkout: Path, folder: Path) -> dict[str, Any]:
    """Return the iteration times of a case."""
    astra = {f"{back_end}_s": astra_s(case, back_end, checkout, folder) for back_end in _BACK_ENDS}
    return {
        "trace": f"{case.name}, {case.ranks} ranks",
        "network": case.network,
        "chunks": case.chunks,
        **astra,
        "ours_s": ours_s(case),
    }


def astra_s(case: Case, back_end: str, checkout: Path, folder: Path) -> float:
    """Return when the last rank has finished in astra-sim."""
    system = {
        "scheduling-policy": "FIFO",
        "endpoint-delay": _ENDPOINT_NS,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": case.chunks,
        **{f"{kind}-implementation": ["ring"] for kind in ("all-reduce", "all-gather", "reduce-scatter")},
        "all-to-all-implementation": ["direct"],
        "collective-optimization": "localBWAware",
        "local-mem-bw": MEMORY_GB_PER_S if case.by_operations else _NO_LIMIT_GB_PER_S,
        "boost-mode": 0,
        "roofline-enabled": int(case.by_operations),
        "peak-perf": PEAK_TFLOPS,
    }
    network = (
        f"topology: [ {case.network} ]\nnpus_count: [ {case.ranks} ]\n"
        f"bandwidth: [ {BANDWIDTH_GB_PER_S} ]\nlatency: [ {LATENCY_NS} ]\n"
    )
    files = {
        "system.json": json.dumps(system),
        "network.yml": network,
        "memory.json": '{"memory-type": "NO_MEMORY_EXPANSION"}',
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    prefix = next(path for path in case.trace.iterdir() if path.name.endswith(".0.et")).name[: -len(".0.et")]
    command = [
        str(_program(checkout, back_end)),
        f"--workload-configuration={case.trace.absolute() / prefix}",
        f"--system-configuration={folder / 'system.json'}",
        f"--network-configuration={folder / 'network.yml'}",
        f"--remote-memory-configuration={folder / 'memory.json'}",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    cycles = [int(found) for found in _CYCLES.findall(done.stdout)]
    if done.returncode or len(cycles) != case.ranks:
        raise RuntimeError(f"astra-sim has not finished {case.name}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return max(cycles) / 1e9


def ours_s(case: Case) -> float:
    """Return how long an iteration takes in our simulator."""
    hosts = tuple(f"h{rank}" for rank in range(case.ranks))
    step_latency_s = LATENCY_NS * (2 if case.network == "Switch" else 1) / 1e9
    workload = ty.ChakraWorkload(
        type="chakra",
        trace=str(case.trace.absolute()),
        flows_per_pair=1,
        step_latency_s=step_latency_s,
        device=Device(flops_per_s=PEAK_TFLOPS * 1e12, efficiency=1.0),
        memory_bytes_per_s=MEMORY_GB_PER_S * 1e9,
    )
    job = ty.JobSpecification(name="job", hosts=hosts, gpus_per_host=1, iterations=3, workload=workload)
    scenario = ty.Scenario(name="compared", topology=_topology(case, hosts), jobs=(job,), reaction_delay_s=0)
    (run,) = ty.run(ty.build_scenario(scenario), "ecmp", on="simulator", progress=False).jobs
    assert run.iteration_time_s is not None
    return run.iteration_time_s


def _topology(case: Case, hosts: tuple[str, ...]) -> Any:
    """Return the nearest network: of a switch, or of switches with a host each, in a ring or all with each other."""
    if case.network == "Switch":
        return ty.StarSpecification(kind="star", hosts=case.ranks, host_link_gbps=LINK_GBPS, delay_us=0)
    switches = tuple(f"s{rank}" for rank in range(case.ranks))
    links: list[dict[str, Any]] = [
        {"ends": (host, switch), "gbps": _ROOMY * LINK_GBPS} for host, switch in zip(hosts, switches, strict=True)
    ]
    neighbours = zip(switches, (*switches[1:], switches[0]), strict=True)
    pairs = neighbours if case.network == "Ring" else combinations(switches, 2)
    links += [{"ends": ends, "gbps": LINK_GBPS} for ends in pairs]
    return ty.GraphSpecification.model_validate(
        {"kind": "graph", "hosts": hosts, "switches": switches, "links": links, "delay_us": 0}
    )


def _program(checkout: Path, back_end: str) -> Path:
    return checkout / f"build/astra_analytical/build/bin/AstraSim_Analytical_Congestion_{back_end.capitalize()}"


def _missing(checkout: Path | None) -> str:
    if checkout is None:
        return "name its checkout with --astra-sim or ASTRA_SIM"
    absent = [path for path in (_program(checkout, each) for each in _BACK_ENDS) if not path.is_file()]
    return f"{absent[0]} is not there" if absent else ""


if __name__ == "__main__":
    sys.exit(main())
