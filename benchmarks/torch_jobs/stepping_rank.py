"""A rank that trains a model of 10 million parameters by DDP: ``python stepping_rank.py``.

For each line of standard input it does something, and answers with a line. ``attach`` and ``detach`` do that. For a
number it does so many steps, and answers with a JSON object: how long each took, in seconds; how many collectives they
had; and the processor time in seconds of all threads that there would not be if nothing were attached.
"""

import json
import sys
import time
from contextlib import suppress
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hostlib.torch

_LAYERS, _WIDTH, _ROWS = 10, 1000, 32
_THREADS = Path("/proc/self/task")


def main() -> None:
    """Do what standard input says, until its end."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    layers = [torch.nn.Linear(_WIDTH, _WIDTH) for _ in range(_LAYERS)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    inputs = torch.randn(_ROWS, _WIDTH)
    own_threads = _threads()
    for line in iter(sys.stdin.readline, ""):
        match line.strip():
            case "attach":
                own_threads = _threads()
                hostlib.torch.attach()
                print("attached", flush=True)
            case "detach":
                hostlib.torch.detach()
                print("detached", flush=True)
            case steps:
                dist.barrier()
                collectives, processor_s = hostlib.torch.stats().collectives, _processor_s(own_threads)
                times_s = []
                for _ in range(int(steps)):
                    began_s = time.perf_counter()
                    model(inputs).square().mean().backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    times_s.append(time.perf_counter() - began_s)
                answer = {
                    "times_s": times_s,
                    "collectives": hostlib.torch.stats().collectives - collectives,
                    "processor_s": _processor_s(own_threads) - processor_s,
                }
                print(json.dumps(answer), flush=True)
    dist.destroy_process_group()


def _threads() -> frozenset[str]:
    return frozenset(thread.name for thread in _THREADS.iterdir())


def _processor_s(without: frozenset[str]) -> float:
    """Return the processor time of all threads but some."""
    total_ns = 0
    for thread in _threads() - without:
        with suppress(OSError):  # it has ended meanwhile
            total_ns += int((_THREADS / thread / "schedstat").read_text().split()[0])
    return total_ns / 1e9


if __name__ == "__main__":
    main()
