"""Ranks of a real job over gloo, each a process of its own, on the loopback interface."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S

_ROOT = Path(__file__).parents[3]


def run_ranks(program: str, num_ranks: int, folder: Path) -> list[Any]:
    """Run ``main(rank)`` of a module of this folder in each rank; returns what each returns, as JSON has it."""
    command = [sys.executable, "-m", __name__, program, str(num_ranks), str(folder)]
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen([*command, str(rank)], cwd=_ROOT, env=environment, stderr=subprocess.PIPE, text=True)
        for rank in range(num_ranks)
    ]
    try:
        for rank, process in enumerate(ranks):
            _, errors = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0, f"rank {rank}: {errors}"
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    return [json.loads((folder / str(rank)).read_text()) for rank in range(num_ranks)]


def _run_rank(program: str, num_ranks: int, folder: Path, rank: int) -> None:
    import torch.distributed as dist

    # Through a file, so that all connections of the process are gloo's.
    dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=num_ranks)
    result = import_module(f"{__package__}.{program}").main(rank)
    (folder / str(rank)).write_text(json.dumps(result))
    # Not by the interpreter's own end: a thread of gloo that lets go of a tensor then aborts the process. It may be the
    # last one that has it where the machine is busy, and FSDP and compiled code keep the group that would end it.
    os._exit(0)


if __name__ == "__main__":
    _run_rank(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
