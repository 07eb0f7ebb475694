"""Data parallel, with an iteration recorded: returns how long iterations took, in seconds."""

import os
import time
from pathlib import Path
from statistics import median

import torch
from torch.nn.parallel import DistributedDataParallel

import hostlib.torch
from tests.patience import PATIENCE_S

_WIDTH, _ITERATIONS = 512, 12


def main(rank: int) -> dict[str, object]:
    hostlib.torch.attach(profile_iterations=3, trace_folder=os.environ["RECORDED_TO"])
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = DistributedDataParallel(
        torch.nn.Sequential(*[torch.nn.Linear(_WIDTH, _WIDTH) for _ in range(4)]), bucket_cap_mb=1.0
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    took_s = []
    for _ in range(_ITERATIONS):
        began_s = time.perf_counter()
        model(torch.randn(256, _WIDTH)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        took_s.append(time.perf_counter() - began_s)
        torch.distributed.barrier()
    deadline_s = time.monotonic() + PATIENCE_S
    recorded = Path(os.environ["RECORDED_TO"]) / f"trace.{rank}.jsonl"
    while not recorded.exists():
        assert time.monotonic() < deadline_s, hostlib.torch.stats()
        time.sleep(0.01)
    torch.distributed.barrier()
    hostlib.torch.detach()
    return {"median_s": median(took_s)}
