"""The emulator's speed in virtual time, before and after real interfaces: two checkouts take turns."""

import statistics
import subprocess
import sys
from pathlib import Path

PAIRS = 5
_SCRIPT = "from benchmarks import emulator; emulator.RUNS = 1; print(*emulator.packet_hops_per_s())"

Figures = dict[str, object]


def virtual_time_figures(before: Path | None) -> Figures:
    """Compare packet-hops a second of processor time of this checkout with those of another one.

    The other checkout needs its environment in ``.venv``.
    """
    if before is None:
        reason = "no checkout to compare with: --before CHECKOUT"
        return {"virtual_time_slowdown": None, "virtual_time_slowdown_reason": reason}
    here = Path(__file__).resolve().parent.parent.parent
    other = str(before / ".venv/bin/python")
    ratios, speeds = [], []
    for pair in range(1 + PAIRS):
        earlier, now = _packet_hops_per_s(before, other), _packet_hops_per_s(here, sys.executable)
        if pair:  # the first one compiles
            speeds.append(now)
            ratios.append(now / earlier)
    return {
        "virtual_time_slowdown": round(1 - statistics.median(ratios), 4),
        "packet_hops_per_s": round(statistics.median(speeds)),
        "virtual_time_slowdown_runs": [round(1 - ratio, 4) for ratio in ratios],
    }


def _packet_hops_per_s(checkout: Path, python: str) -> float:
    done = subprocess.run([python, "-c", _SCRIPT], cwd=checkout, capture_output=True, text=True, check=True)
    return float(done.stdout)
