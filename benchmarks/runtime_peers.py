"""The runtime beside Ray and torch.distributed, for ``benchmarks/runtime.py``: identical computations, in turn."""

import json
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

import runtime as rt

Figures = dict[str, float]

RAY_ON_LOOPBACK = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""The environment in which Ray tells nobody of itself, and takes 127.0.0.1 for an address of its nodes."""
HOSTS = (1, 2, 4, 8)
CHAIN = 128
TRAINED_HOSTS, TRAINED_STEPS = 2, 40
PATIENCE_S = 300.0
_FOLDER = Path(__file__).resolve().parent
_IN_FLIGHT = 8
_TRIES = 3
_START_S = 60.0


@rt.function(library="numpy", outputs=lambda x: x)
def add_one(x: Any) -> Any:
    """Add 1."""
    return x + 1


@rt.function(library="numpy", outputs=lambda x: x)
def fused(x: Any) -> Any:
    """Add 1 many times."""
    for _ in range(128):
        x = x + 1
    return x


@rt.function(collective=True)
def reduce_and_add_one(x: Any) -> Any:
    """Return the mean over all shards, and 1."""
    return rt.all_reduce(x) / rt.num_shards() + 1


@rt.function(collective=True)
def trained(*arrays: Any) -> Any:
    """Do a step of training (``benchmarks/runtime_model.py``)."""
    from benchmarks.runtime_model import training_step

    return training_step(lambda tensor: rt.all_reduce(tensor) / rt.num_shards(), *arrays)


class Ray:
    """A process that measures Ray, by a ``worker``. Raises OSError where Ray does not start within a minute."""

    def __init__(self, python: str, worker: str) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - close() closes it
        self._process = subprocess.Popen(
            [python, str(_FOLDER / worker)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={"PATH": "/usr/bin:/bin", **RAY_ON_LOOPBACK},
        )
        started_s = time.perf_counter()
        hangs = Timer(_START_S, self._process.kill)
        hangs.start()
        try:
            self.version = self._answer()
        except OSError:
            self.close()
            raise
        finally:
            hangs.cancel()
        self.start_s = time.perf_counter() - started_s

    def seconds(self, figure: str, hosts: int, count: int) -> float:
        """Return the seconds of a figure (``benchmarks/runtime_ray_worker.py``)."""
        return float(self.ask(figure, hosts, count))

    def ask(self, *request: object) -> Any:
        """Return what the worker answers. Raises OSError where it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_START_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            last = (self._errors.read().strip().splitlines() or ["it said nothing"])[-1]
            raise OSError(f"Ray did not start, or ended: {last:.200}")
        return json.loads(line)


def started_ray(python: str, worker: str = "runtime_ray_worker.py") -> Ray | str:
    """Start Ray, or say why it does not start."""
    for _ in range(_TRIES):
        try:
            return Ray(python, worker)
        except OSError as error:
            reason = str(error)
    return f"{reason}, in {_TRIES} tries"


def _timed(call: Callable[[], rt.Array], check: float) -> float:
    """Return how long a call takes until its result is there, the second time."""
    taken_s = 0.0
    for _ in range(2):
        started_s = time.perf_counter()
        result = call().wait(PATIENCE_S)
        taken_s = time.perf_counter() - started_s
        assert (result.numpy() == check).all()
    return taken_s


def _chain(step: Callable[[Any], Any], x: Any, count: int) -> Any:
    for _ in range(count):
        x = step(x)
    return x


def beside_ray(ray: Ray) -> Figures:
    """Measure Figure 5's ``scalar``, and the pipeline of four stages; the least over the numbers of hosts."""
    op_by_op, chained, overhead = [], [], []
    for hosts in HOSTS:
        x = np.zeros(hosts, np.float32)
        with rt.local(islands=1, hosts=hosts, devices=1) as runtime:
            devices = runtime.make_virtual_device_set().add_slice(hosts)
            step, many = rt.pmap(add_one, devices=devices), rt.pmap(fused, devices=devices)
            program = rt.program(lambda x, step=step: _chain(step, x, CHAIN))
            by_op_s = _timed(lambda step=step, x=x: _chain(step, x, CHAIN), CHAIN) / CHAIN
            chained_s = _timed(lambda program=program, x=x: program(x), CHAIN) / CHAIN
            fused_s = _timed(lambda many=many, x=x: _chain(many, x, 32), 32 * CHAIN) / 32
        of_ray_s = ray.seconds("chained", hosts, CHAIN)
        fused_of_ray_s = ray.seconds("fused", hosts, CHAIN)
        started_s = time.perf_counter()
        for _ in range(32):
            fused(np.zeros(1, np.float32))
        bare_s = (time.perf_counter() - started_s) / 32
        op_by_op.append(of_ray_s / by_op_s)
        chained.append(of_ray_s / chained_s)
        overhead.append((fused_s - bare_s) / (fused_of_ray_s - bare_s))
    return {
        "op_by_op_over_ray": min(op_by_op),
        "chained_over_ray": min(chained),
        "fused_overhead_over_ray": max(overhead),
        "pipelined_over_compiled_graph": ray.seconds("compiled_graph", 4, 400) / _pipelined_s(4, 400),
    }


def _pipelined_s(stages: int, count: int) -> float:
    """Return the time of a program with one stage on each host, of which several are under way."""
    with rt.local(islands=1, hosts=stages, devices=1) as runtime:
        devices = runtime.make_virtual_device_set()
        placed = [rt.pmap(add_one, devices=devices.add_slice(1)) for _ in range(stages)]

        @rt.program
        def program(x: Any) -> Any:
            for each in placed:
                x = each(x)
            return x

        x = np.zeros(1, np.float32)
        for _ in range(3):
            program(x).wait(PATIENCE_S)
        started_s = time.perf_counter()
        under_way: deque[rt.Array] = deque()
        for _ in range(count):
            if len(under_way) == _IN_FLIGHT:
                assert (under_way.popleft().numpy(PATIENCE_S) == stages).all()
            under_way.append(program(x))
        for each in under_way:
            assert (each.numpy(PATIENCE_S) == stages).all()
        return (time.perf_counter() - started_s) / count


def collectives() -> Figures:
    """Measure Figure 5's ``allreduce`` beside torch.distributed's own loop; the least over the numbers of hosts."""
    shares = []
    for hosts in HOSTS:
        with rt.local(islands=1, hosts=hosts, devices=1) as runtime:
            step = rt.pmap(reduce_and_add_one, devices=runtime.make_virtual_device_set().add_slice(hosts))
            program = rt.program(lambda x, step=step: _chain(step, x, CHAIN))
            x = np.zeros(hosts, np.float32)
            own_s = _timed(lambda program=program, x=x: program(x), CHAIN) / CHAIN
        plain_s, result = _torch(hosts, "chained", CHAIN)
        assert result == [CHAIN]
        shares.append(plain_s / own_s)
    return {"allreduce_chained_share": min(shares)}


def training() -> Figures:
    """Measure Table 1: training of a small transformer beside plain torch.distributed, with the same losses."""
    from benchmarks.runtime_model import batches, initial_parameters

    with rt.local(islands=1, hosts=TRAINED_HOSTS, devices=1) as runtime:
        devices = runtime.make_virtual_device_set().add_slice(TRAINED_HOSTS)
        parameters: list[Any] = initial_parameters()
        axes = [None] * len(parameters)
        step = rt.pmap(trained, devices=devices, in_axes=[*axes, 0, 0], out_axes=[None, *axes])
        losses = []
        for number, batch in enumerate(batches(TRAINED_HOSTS, TRAINED_STEPS + 1)):
            loss, *parameters = step(*parameters, *batch)
            losses.append(loss)
            if number == 0:
                loss.wait(PATIENCE_S)
                started_s = time.perf_counter()
        losses[-1].wait(PATIENCE_S)
        own_s = (time.perf_counter() - started_s) / TRAINED_STEPS
        found = [float(each.numpy(PATIENCE_S)[0]) for each in losses]
    plain_s, expected = _torch(TRAINED_HOSTS, "training", TRAINED_STEPS)
    assert found == expected, "the losses differ"
    return {"table1_share": plain_s / own_s, "table1_step_s": plain_s}


def _torch(size: int, figure: str, count: int) -> tuple[float, list[float]]:
    """Return what ``benchmarks/runtime_torch_worker.py`` finds."""
    with tempfile.TemporaryDirectory() as folder:
        worker = [sys.executable, str(_FOLDER / "runtime_torch_worker.py")]
        ranks = [
            subprocess.Popen(
                [*worker, str(rank), str(size), f"{folder}/ranks", figure, str(count)],
                stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                text=True,
            )
            for rank in range(size)
        ]
        printed, _ = ranks[0].communicate(timeout=PATIENCE_S)
        if any(rank.wait(PATIENCE_S) for rank in ranks):
            raise RuntimeError(f"torch.distributed failed to measure {figure}")
    seconds, result = json.loads(printed)
    return seconds, result
