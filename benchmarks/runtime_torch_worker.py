"""A rank of plain torch.distributed, for ``benchmarks/runtime_peers.py``: RANK SIZE FILE FIGURE COUNT.

The first rank prints a line of JSON: the seconds of one node or step, and the result.
"""

import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.runtime_model import batches, initial_parameters, training_step

_WARM_UP = 3


def chained(size: int, count: int) -> tuple[float, list[float]]:
    """Return the time of a node that reduces a scalar and adds 1, and the scalar after so many of them."""
    x = torch.zeros(1)
    for node in range(_WARM_UP + count):
        if node == _WARM_UP:
            torch.distributed.barrier()
            x = torch.zeros(1)
            started_s = time.perf_counter()
        torch.distributed.all_reduce(x)
        x = x / size + 1
    return (time.perf_counter() - started_s) / count, x.tolist()


def training(rank: int, size: int, count: int) -> tuple[float, list[float]]:
    """Return the time of a step of training, and the losses."""

    def mean(tensor: torch.Tensor) -> torch.Tensor:
        result = tensor.clone()
        torch.distributed.all_reduce(result)
        return result / size

    parameters = [torch.from_numpy(each) for each in initial_parameters()]
    losses = []
    for step, (inputs, targets) in enumerate(batches(size, count + 1)):
        if step == 1:
            torch.distributed.barrier()
            started_s = time.perf_counter()
        shard = [torch.from_numpy(each).chunk(size)[rank] for each in (inputs, targets)]
        loss, *parameters = training_step(mean, *parameters, *shard)
        losses.append(loss.item())
    return (time.perf_counter() - started_s) / count, losses


def main() -> None:
    """Measure as one rank."""
    rank, size, file, figure, count = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5])
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=size)
    found = chained(size, count) if figure == "chained" else training(rank, size, count)
    if rank == 0:
        print(json.dumps(found), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
