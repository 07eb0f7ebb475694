"""A 1F1B pipeline of two stages, whose passes take a stated time."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

FORWARD_S, BACKWARD_S = 0.02, 0.04
MICRO_BATCHES, ROWS, WIDTH = 4, 16, 64


class _Pause(torch.autograd.Function):
    """Stands for a computation of a stated time."""

    @staticmethod
    def forward(_context: Any, rows: torch.Tensor) -> torch.Tensor:
        time.sleep(FORWARD_S)
        return rows.clone()

    @staticmethod
    def backward(_context: Any, *gradients: torch.Tensor) -> torch.Tensor:
        time.sleep(BACKWARD_S)
        return gradients[0]


class _Stage(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = _Pause.apply(self.linear(rows))
        return found


def main(folder: Path) -> None:
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    stage = PipelineStage(_Stage(), rank, 2, torch.device("cpu"))
    schedule = Schedule1F1B(stage, MICRO_BATCHES, loss_fn=lambda output, target: (output - target).square().sum())
    optimizer = torch.optim.SGD(stage.submod.parameters(), lr=1e-6)
    rows = torch.randn(MICRO_BATCHES * ROWS, WIDTH)
    stopping = torch.zeros(1)
    while not stopping:
        schedule.step(rows) if rank == 0 else schedule.step(target=rows)
        optimizer.step()
        optimizer.zero_grad()
        stopping.fill_(float((folder / "stop").exists()))
        dist.all_reduce(stopping)
        found = sys.modules["hostlib.torch"].stats()
        _write(folder / f"state-{rank}", {"network": {"plan_number": found.plan_number, "levels": dict(found.levels)}})
    dist.destroy_process_group()
    _write(folder / f"result-{rank}", {"ended_s": time.monotonic()})


def _write(path: Path, content: dict[str, object]) -> None:
    """So that a reader finds all of it or nothing."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content))
    part.rename(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
