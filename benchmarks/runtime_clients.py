"""Clients that share one device of the runtime: what they get together, and how exactly each gets its share."""

import time
from contextlib import ExitStack
from itertools import pairwise
from threading import Thread
from typing import Any

import numpy as np

import runtime as rt

Figures = dict[str, float]

QUANTA = 1000
PATIENCE_S = 120.0


def clients() -> Figures:
    """Measure what clients get together of one device."""
    shares: list[float] = []
    drops: list[float] = []
    for duration_s in (1.04e-3, 2.4e-3):
        together = [_client_share(number, duration_s) for number in (1, 2, 4, 8, 16)]
        shares += together
        drops += [1 - after / before for before, after in pairwise(together)]
    return {"multi_client_share": min(shares), "multi_client_drop": max(0.0, *drops)}


def _client_share(number: int, duration_s: float) -> float:
    with rt.local(islands=1, hosts=1, devices=1) as runtime:
        _, taken_s = _run_clients(runtime, [runtime.tokens["local"]] * number, duration_s)
    return QUANTA * duration_s / taken_s


def _run_clients(runtime: rt.LocalRuntime, tokens: list[str], duration_s: float) -> tuple[list[dict[str, Any]], float]:
    """Let clients submit timers, each 16 ahead, and look once all first ones have run: some began while others came.

    Return ``QUANTA`` that the device ran one after the other, and how long clients waited for as many.
    """
    ahead, done = 16, [0] * len(tokens)
    is_over = False

    def submit(client: int, connected: rt.Runtime) -> None:
        wait = rt.pmap(rt.timer(duration_s), devices=connected.make_virtual_device_set().add_slice(1))
        x = np.zeros(1, np.float32)
        running = [wait(x) for _ in range(ahead)]
        while not is_over:
            running.pop(0).wait(PATIENCE_S)
            done[client] += 1
            running.append(wait(x))

    with ExitStack() as stack:
        threads = []
        for client, token in enumerate(tokens):
            connected = stack.enter_context(rt.connect(runtime.address, token))
            threads.append(Thread(target=submit, args=(client, connected)))
        for thread in threads:
            thread.start()
        while min(done) < ahead:
            time.sleep(0.001)
        begun, started_s = sum(done), time.perf_counter()
        while sum(done) < begun + QUANTA:
            time.sleep(0.001)
        taken_s = (time.perf_counter() - started_s) * QUANTA / (sum(done) - begun)
        events = sorted((each for each in runtime.trace() if each["ph"] == "X"), key=lambda each: each["ts"])
        is_over = True
        for thread in threads:
            thread.join()
    return events[begun : begun + QUANTA], taken_s


def shares() -> Figures:
    """Measure how exactly clients get their shares."""
    return {"share_error": max(_share_error(weights) for weights in ((1, 1, 1, 1), (1, 2, 4, 8)))}


def _share_error(weights: tuple[int, ...]) -> float:
    named = {f"client-{number}": float(weight) for number, weight in enumerate(weights)}
    with rt.local(islands=1, hosts=1, devices=1, policy="shares", weights=named) as runtime:
        events, _ = _run_clients(runtime, [runtime.tokens[name] for name in named], 2e-3)
    ran = [each["args"]["client"].partition("#")[0] for each in events]
    done = [ran.count(name) for name in named]
    return max(
        abs(each / sum(done) - weight / sum(weights)) / (weight / sum(weights))
        for each, weight in zip(done, weights, strict=True)
    )
