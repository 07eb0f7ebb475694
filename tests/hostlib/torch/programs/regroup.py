"""Makes, destroys and makes again process groups, and attaches twice once it is in the middle of it.

It goes from one stage to the next when the test has seen the controller's registry: when a file of the next stage's
name is there.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

import hostlib.torch

_PACE_S = 0.02


def main(folder: Path) -> None:
    dist.init_process_group("gloo")
    hostlib.torch.attach()
    rank = dist.get_rank()
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    _iterate(folder, "detached", optimizer, [dist.group.WORLD], size=500)
    hostlib.torch.detach()
    _iterate(folder, "attached", optimizer, [dist.group.WORLD])
    hostlib.torch.attach()
    _iterate(folder, "groups", optimizer, [dist.group.WORLD])
    groups = [dist.new_group([0, 1]) for _ in range(2)]
    _iterate(folder, "again", optimizer, [dist.group.WORLD, *groups])
    dist.destroy_process_group()
    for _ in range(20):  # as quickly as it can
        _begin_again()
        dist.barrier()
        dist.destroy_process_group()
    _begin_again()
    _iterate(folder, "stop", optimizer, [dist.group.WORLD], size=500)
    dist.destroy_process_group()
    ended = {"ended_s": time.monotonic()}
    (folder / f"result-{rank}").write_text(json.dumps(ended))


def _begin_again() -> None:
    """On another port: PyTorch hangs where a rank is back before the last one has closed the store."""
    os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)
    dist.init_process_group("gloo")


def _iterate(
    folder: Path, following: str, optimizer: torch.optim.Optimizer, groups: list[dist.ProcessGroup], size: int = 1000
) -> None:
    """Iterate until the next stage's file is there: an all-reduce in each group, one larger than the other."""
    stopping = torch.zeros(1)
    while not stopping:
        for number, group in enumerate(groups):
            dist.all_reduce(torch.zeros(size * (number + 1)), group=group)
        stopping.fill_(float((folder / following).exists()))
        dist.all_reduce(stopping)
        optimizer.step()
        time.sleep(_PACE_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
