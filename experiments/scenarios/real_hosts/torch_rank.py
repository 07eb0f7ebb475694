"""A rank of a PyTorch job: trains while it is told to.

    python -m experiments.scenarios.real_hosts.torch_rank PLAN

PLAN is a JSON object, ``TrainingPlan``; the rest stands in the environment as torchrun sets it. When all have trained
for one iteration, the first prints ``ready``. It then obeys lines of its standard input: ``run 20`` and ``pause``
(``run 0``: until it is paused). At the end of an iteration it prints ``iteration 3 took 1.042 s`` and the iteration's
``Timeline``, and ``paused`` when it is done. The other ranks follow the first. All leave at the end of its input.
"""

import json
import math
import os
import select
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NoReturn

import torch
import torch.distributed as dist

import hostlib.torch
from experiments.scenarios.real_hosts.profiled_step import PROFILED_OF, profiled
from experiments.scenarios.real_hosts.torch_training import STOPWATCH, training
from experiments.scenarios.real_hosts.training_plan import TrainingPlan
from experiments.scenarios.timeline import ProfiledRange

TIMEOUT = timedelta(seconds=120)
"""Of collectives and of finding each other: then a rank gives up on the others, and fails."""
_LONGEST_PAUSE = timedelta(days=30)


def main(plan: str) -> NoReturn:
    """Be a rank to the end of the job, and of the process; one that fails exits with status 1, and says why."""
    hostlib.torch.attach()
    status = 0
    try:
        _train(plan)
    except BaseException:
        traceback.print_exc()
        status = 1
    hostlib.torch.detach()
    # Not by the interpreter's own end. Gloo's threads, which outlive the group where PyTorch keeps it, as it does for
    # DDP, may wait for it while it waits for them; and one that lets go of a tensor then aborts the process.
    os._exit(status)


def _train(plan: str) -> None:
    torch.set_num_threads(1)
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(*address, ranks, is_master=rank == 0, timeout=TIMEOUT)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=TIMEOUT)
    step = training(TrainingPlan(**json.loads(plan)))
    step()
    turns = dist.PrefixStore("turn", store)
    turns.set_timeout(_LONGEST_PAUSE)
    if rank == 0:
        _say("ready")
    for number in _told(turns) if rank == 0 else _following(turns):
        STOPWATCH.take(0.0)
        began_s = time.perf_counter()
        ranges: Sequence[ProfiledRange] = ()
        if rank == 0 and number % PROFILED_OF == PROFILED_OF - 1:
            ranges = profiled(step)
        else:
            step()
        took_s = time.perf_counter() - began_s
        if rank == 0:
            timeline = replace(STOPWATCH.take(began_s), profiled=ranges)
            _say(f"iteration {number} took {took_s:.4f} s {timeline.to_json()}")
    dist.barrier()  # the first rank has the store, from which the others learn that they may leave
    dist.destroy_process_group()


def _told(turns: dist.Store) -> Iterator[int]:
    """Yield the number in its run of each iteration that the first rank is to train for, and tell the others."""
    turn = 0
    with open(0, "rb", buffering=0, closefd=False) as commands:  # unbuffered: what waits is seen from outside
        for command in iter(commands.readline, b""):
            word, *rest = command.split()
            if word == b"run":
                number, end = 0, int(rest[0]) or math.inf
                while number < end and not select.select([commands], [], [], 0)[0]:
                    turns.set(str(turn), "train")
                    yield number
                    number += 1
                    turn += 1
                _say("paused")
    turns.set(str(turn), "leave")


def _following(turns: dist.Store) -> Iterator[int]:
    """Yield the number of each iteration that another rank is to train for."""
    turn = 0
    while turns.get(str(turn)) == b"train":
        yield turn
        turn += 1


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
