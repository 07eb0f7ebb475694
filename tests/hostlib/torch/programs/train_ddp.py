"""A training script as a user has it: data parallel, deterministic. It knows nothing of the host library.

Each rank writes what it sees: a digest of loss, gradients and parameters for each step, and when it has ended. It
steps ``--steps`` times, or until the file ``stop`` is there.
"""

import argparse
import copy
import hashlib
import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

# DDP would import it later. Its functions then keep the group for good, and with it gloo's threads, of which one that
# lets go of a tensor while the interpreter ends aborts the process.
import torch.distributed.nn.functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

PERIOD = 40
"""After so many steps it begins anew, with the same parameters, and computes the same again."""
_WIDTH, _BATCH = 64, 8


def main(folder: Path, steps: int, accumulate: int, workers: int, pace_s: float, *, destroys: bool) -> None:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    layers = [layer for _ in range(3) for layer in (torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.Tanh())]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.02)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = torch.randn(4 * _BATCH, _WIDTH) + rank
    loader = DataLoader(TensorDataset(rows), batch_size=_BATCH, num_workers=workers)
    digests: list[str] = []
    initial = copy.deepcopy(model.state_dict())
    stopping = torch.zeros(1)
    while len(digests) < steps and not stopping:
        if len(digests) % PERIOD == 0:
            model.load_state_dict(initial)
        for (batch,) in loader:
            for _ in range(accumulate):
                loss = model(batch).square().mean()
                loss.backward()
            gradients = [parameter.grad for parameter in model.parameters()]
            optimizer.step()
            digests.append(_digest([loss, *gradients, *model.parameters()]))
            optimizer.zero_grad()
            time.sleep(pace_s)
            _write(folder / f"state-{rank}", {"steps": len(digests), "network": _network()})
        stopping.fill_(float((folder / "stop").exists()))
        dist.all_reduce(stopping)
    network = _network()
    while sys.getrefcount(stopping) > 2:
        # Another thread of gloo holds it still. PyTorch aborts the process where that one lets go of a tensor after the
        # interpreter has ended, as it happens on a busy machine.
        time.sleep(0.001)
    if destroys:
        dist.destroy_process_group()
    _write(folder / f"result-{rank}", {"digests": digests, "network": network, "ended_s": time.monotonic()})


def _digest(tensors: list[torch.Tensor]) -> str:
    return hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in tensors)).hexdigest()


def _network() -> dict[str, object] | None:
    """What the host library says, where this process is attached."""
    attached = sys.modules.get("hostlib.torch")
    if attached is None:
        return None
    found = attached.stats()
    return {
        "state": found.state,
        "job": found.job,
        "note": found.note,
        "iterations": found.iterations,
        "collectives": found.collectives,
        "plan_number": found.plan_number,
        "levels": dict(found.levels),
    }


def _write(path: Path, content: dict[str, object]) -> None:
    """So that a reader finds all of it or nothing."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content))
    part.rename(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=1 << 30)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--pace-s", type=float, default=0.0)
    parser.add_argument("--keep-group", dest="destroys", action="store_false")
    given = parser.parse_args()
    main(given.folder, given.steps, given.accumulate, given.workers, given.pace_s, destroys=given.destroys)
