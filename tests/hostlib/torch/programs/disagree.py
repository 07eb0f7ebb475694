"""Two ranks that do not do the same: they send each other pieces of different sizes, and one is in a group more."""

import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

_PACE_S = 0.02
_SENT = (1000, 3000)
"""By rank."""


def main(folder: Path) -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    alone = dist.new_group([0])
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    stopping = torch.zeros(1)
    received = torch.empty(_SENT[1 - rank])
    while not stopping:
        sending = dist.isend(torch.full((_SENT[rank],), float(rank)), 1 - rank)
        dist.recv(received, 1 - rank)
        sending.wait()
        if rank == 0:
            dist.all_reduce(torch.ones(50_000), group=alone)
        stopping.fill_(float((folder / "stop").exists()))
        dist.all_reduce(stopping)
        optimizer.step()
        time.sleep(_PACE_S)
    dist.destroy_process_group()
    ended = {"received": received.unique().tolist(), "ended_s": time.monotonic()}
    (folder / f"result-{rank}").write_text(json.dumps(ended))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
