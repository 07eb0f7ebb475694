"""Data-parallel training as everybody writes it: it knows nothing of Trainyard.

Start one process for each rank, as torchrun does. It prints how long each iteration takes.
"""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ITERATIONS = int(os.environ.get("ITERATIONS", "20"))


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
    model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(64, 1024)
    for iteration in range(ITERATIONS):
        began_s = time.perf_counter()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"iteration {iteration} took {time.perf_counter() - began_s:.3f} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
