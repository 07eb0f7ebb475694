"""A rank: ``python -m experiments.compression.real.rank PLAN``, the rest in the environment as torchrun sets it.

PLAN is the path of a ``RankPlan``. What is plain all-reduce is plain DDP; the product's hook sends all else.
"""

import os
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from experiments.compression.methods import METHODS, Method
from experiments.compression.numbers import DENSE
from experiments.compression.real.plan import RankPlan, Task, TaskResult, results_to_json
from experiments.compression.real.stand_in import stand_in, step
from experiments.compression.real_models import MODELS
from hostlib.compression import NetSense
from hostlib.compression.agreement import Agreed
from hostlib.compression.choice import Choice
from hostlib.compression.control.budget import BudgetSettings
from hostlib.compression.control.cost import Bucket, MeasuredCosts
from hostlib.compression.control.paper import PaperParameters
from hostlib.compression.controllers import Controller, controllers_of
from hostlib.torch.network_address import choose_interface

_TIMEOUT = timedelta(seconds=600)


def main(path: str) -> None:
    """Be a rank to the end of the plan."""
    choose_interface()
    torch.set_num_threads(1)
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(rank)
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(*address, ranks, is_master=rank == 0, timeout=_TIMEOUT)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=_TIMEOUT)
    plan = RankPlan.from_json(Path(path).read_text())
    results = [_result(plan, task) for task in plan.tasks]
    if rank == 0:
        Path(plan.results).write_text(results_to_json(results))
    dist.barrier()
    dist.destroy_process_group()


def _result(plan: RankPlan, task: Task) -> TaskResult:
    model = replace(MODELS[plan.model], bucket_mib=plan.bucket_mib)
    parallel = DistributedDataParallel(stand_in(model, plan.compute_s), bucket_cap_mb=plan.bucket_mib)
    controllers = None if task.method == DENSE else _Controllers(METHODS[task.method], task)
    net = None
    if controllers is not None:
        net = NetSense(controllers)
        net.attach(parallel)
    for _ in range(task.unsettled_steps):
        step(parallel)
    dist.barrier()
    step_s = []
    began = _core_times_s()
    for _ in range(task.steps):
        begin_s = time.perf_counter()
        step(parallel)
        step_s.append(time.perf_counter() - begin_s)
    busy_s, idle_s = (after - before for after, before in zip(_core_times_s(), began, strict=True))
    return TaskResult(
        task.method,
        tuple(step_s),
        idle_s / (busy_s + idle_s),
        None if controllers is None else controllers.costs,
        1.0 if net is None else net.stats().ratio,
    )


def _core_times_s() -> tuple[float, float]:
    """Return for how long the cores that this process may use have computed, and for how long they have not.

    A quota of a control group does not count.
    """
    names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    busy = idle = 0
    for name, *ticks in map(str.split, Path("/proc/stat").read_text().splitlines()):
        if name in names:
            idle += int(ticks[3]) + int(ticks[4])
            busy += sum(map(int, (*ticks[:3], *ticks[5:8])))
    return busy, idle


class _Controllers:
    """Makes the controller of a method, and notes what codecs and hops take."""

    def __init__(self, method: Method, task: Task) -> None:
        self._method = method
        self._steps = task.unsettled_steps + task.steps
        self.costs: MeasuredCosts | None = None

    def __call__(self, buckets: Sequence[Bucket], costs: MeasuredCosts) -> Controller:
        self.costs = costs
        if self._method.plan_at is None:
            return controllers_of(self._method.name, BudgetSettings(), PaperParameters())(buckets, costs)
        return _Fixed(self._method.plan_at(0, self._steps, len(buckets)))


class _Fixed:
    """Always chooses the same."""

    reason = "The method says so."
    remainder = None

    def __init__(self, choices: tuple[Choice, ...]) -> None:
        self.choices = choices

    def decide(self, sent: Sequence[Choice], agreed: Agreed | None, remainder: Choice | None = None) -> None:
        """Stay."""


if __name__ == "__main__":
    status = 0
    try:
        main(sys.argv[1])
    except BaseException:
        traceback.print_exc()
        status = 1
    # Not by the interpreter's own end: gloo's threads may wait for other ranks, and PyTorch, which keeps the group of
    # DDP, lets one abort the process that lets go of a tensor then.
    os._exit(status)
