"""A training script that compresses its gradients by NetSense's line, before or after the host library is attached."""

import argparse
import json
import time
from pathlib import Path

import torch
import torch.distributed as dist

# DDP would import it later. Its functions then keep the group for good, and with it gloo's threads, of which one that
# lets go of a tensor while the interpreter ends aborts the process.
import torch.distributed.nn.functional
from torch.nn.parallel import DistributedDataParallel

import hostlib.torch
from hostlib.compression import NetSense, attached

_WIDTH = 64


def main(folder: Path, *, attaches_later: bool) -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    if not attaches_later:
        hostlib.torch.attach()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(torch.nn.Sequential(*(torch.nn.Linear(_WIDTH, _WIDTH) for _ in range(3))))
    net = NetSense()
    net.attach(model)
    if attaches_later:
        hostlib.torch.attach()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    stopping = torch.zeros(1)
    steps = 0
    while not stopping:
        model(torch.randn(8, _WIDTH)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.02)
        steps += 1
        if steps % 20 == 0:
            stopping.fill_(float((folder / "stop").exists()))
            dist.all_reduce(stopping)
        _write(folder / f"state-{rank}", {"steps": steps, "network": _network()})
    network = _network()
    dist.destroy_process_group()
    _write(folder / f"result-{rank}", {"network": network, "ratio": net.stats().ratio, "ended_s": time.monotonic()})


def _network() -> dict[str, object]:
    found = hostlib.torch.stats()
    directions = [each.steps.direction for each in attached.compressed().values()]
    return {
        "state": found.state,
        "plan_number": found.plan_number,
        "rates_bps": [each.rate_bps for each in directions],
        "slacks_s": [each.slack_s for each in directions],
        "ignored_directions": found.ignored_directions,
    }


def _write(path: Path, content: dict[str, object]) -> None:
    """So that a reader finds all of it or nothing."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content))
    part.rename(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--attach-later", action="store_true")
    given = parser.parse_args()
    main(given.folder, attaches_later=given.attach_later)
