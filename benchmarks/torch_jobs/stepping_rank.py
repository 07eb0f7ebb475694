"""A rank that trains a model of 10 million parameters by DDP: ``python stepping_rank.py [attach]``.

For each number on a line of standard input it does so many steps, and prints how long they took, in seconds.
"""

import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

_LAYERS, _WIDTH, _ROWS = 10, 1000, 32


def main(arguments: list[str]) -> None:
    """Train until the end of standard input."""
    if arguments == ["attach"]:
        import hostlib.torch

        hostlib.torch.attach()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    layers = [torch.nn.Linear(_WIDTH, _WIDTH) for _ in range(_LAYERS)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    inputs = torch.randn(_ROWS, _WIDTH)
    for line in iter(sys.stdin.readline, ""):
        dist.barrier()
        began_s = time.perf_counter()
        for _ in range(int(line)):
            model(inputs).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        print(time.perf_counter() - began_s, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
