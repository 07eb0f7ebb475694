"""Jobs of a few ranks over gloo on loopback: a function of a program, in a process for each rank."""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S

_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Ended:
    """A rank that has ended: its status, what it wrote to standard error, and what its function returned."""

    status: int
    errors: str
    result: Any


def run_job(program: str, function: str, size: int, folder: Path, **arguments: Any) -> list[Any]:
    """Run a function of a program in each rank; return what each returns, as JSON has it."""
    ended = run_ranks(program, function, size, folder, **arguments)
    for rank, each in enumerate(ended):
        assert each.status == 0, f"rank {rank} ended with status {each.status}: {each.errors}"
    return [each.result for each in ended]


def run_ranks(program: str, function: str, size: int, folder: Path, **arguments: Any) -> list[Ended]:
    """Run ranks of which some may fail; they end by themselves."""
    given = json.dumps({"program": program, "function": function, "size": size, "folder": str(folder)} | arguments)
    environment: Mapping[str, str] = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", __name__, str(rank), given],
            cwd=_ROOT,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    ended = []
    try:
        for rank, process in enumerate(ranks):
            _, errors = process.communicate(timeout=PATIENCE_S)
            path = folder / f"result-{rank}"
            result = json.loads(path.read_text()) if path.exists() else None
            ended.append(Ended(process.returncode, errors, result))
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    return ended


def _run_rank(rank: int, *, program: str, function: str, size: int, folder: str, **arguments: Any) -> None:
    import torch.distributed as dist

    store = f"file://{folder}/store"  # so that all connections are gloo's
    dist.init_process_group(
        "gloo", init_method=store, rank=rank, world_size=size, timeout=timedelta(seconds=PATIENCE_S)
    )
    result = getattr(import_module(f"{__package__}.programs.{program}"), function)(rank, size, **arguments)
    Path(folder, f"result-{rank}").write_text(json.dumps(result))


if __name__ == "__main__":
    status = 0
    try:
        _run_rank(int(sys.argv[1]), **json.loads(sys.argv[2]))
    except BaseException:
        traceback.print_exc()
        status = 1
    # Not by the interpreter's own end: a thread of gloo that lets go of a tensor then aborts the process, and PyTorch
    # keeps the group of DDP, which would end it.
    os._exit(status)
