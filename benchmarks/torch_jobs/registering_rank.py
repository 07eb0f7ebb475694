"""A rank of a DDP job that notes how soon it is registered, and how soon its level is in force.

    python registering_rank.py FILE

The first rank writes to FILE, as JSON: ``template_registered_iterations``, how many iterations had ended when the
controller had acknowledged the job; and ``level_in_force_s``, how much later the job's connections had a level.
"""

import json
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hostlib.torch
from hostlib.torch import State

_LOOK_S = 0.005
_ITERATIONS = 12
_LAYERS, _WIDTH, _ROWS = 4, 512, 64


def main(file: str) -> None:
    """Train for some iterations."""
    hostlib.torch.attach()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    layers = [torch.nn.Linear(_WIDTH, _WIDTH) for _ in range(_LAYERS)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    inputs = torch.randn(_ROWS, _WIDTH)
    if dist.get_rank() == 0:
        threading.Thread(target=_watch, args=(Path(file),), daemon=True).start()
    for number in range(_ITERATIONS):
        began_s = time.perf_counter()
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.2)
        if dist.get_rank() == 0:
            print(f"iteration {number} took {time.perf_counter() - began_s:.4f} s", flush=True)
    dist.destroy_process_group()


def _watch(file: Path) -> None:
    """Wait until the job is registered, and then for its level."""
    while (stats := hostlib.torch.stats()).state is not State.REGISTERED:
        time.sleep(_LOOK_S)
    registered_s, iterations = time.perf_counter(), stats.iterations
    while not hostlib.torch.stats().levels:
        time.sleep(_LOOK_S)
    took_s = time.perf_counter() - registered_s
    file.write_text(json.dumps({"template_registered_iterations": iterations, "level_in_force_s": round(took_s, 4)}))


if __name__ == "__main__":
    main(sys.argv[1])
