"""How fast tenants train: the times at which their steps end."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from threading import Event, Thread
from typing import Any

import runtime as rt
from experiments.real_islands.programs import Program

_AHEAD = 3
"""Steps under way: the next ones are known before this one has ended, so nobody waits for the client."""
_WARM_UP = 2
"""Steps after which functions are known, connections are open and flows have levels."""
_PATIENCE_S = 120.0

Build = Callable[[rt.Runtime], tuple[Program, Sequence[Any]]]
"""Makes a tenant's program for its client, with the state that it starts from."""


@dataclass(frozen=True, slots=True)
class Trained:
    """When the steps of a tenant ended, by ``time.perf_counter``; those to warm up are not among them."""

    ended_s: tuple[float, ...]

    @property
    def step_s(self) -> float:
        """The median time of a step. Raises ValueError where fewer than two have ended."""
        if len(self.ended_s) < 2:
            raise ValueError("a tenant has ended too few steps to be measured")
        pairs = zip(self.ended_s, self.ended_s[1:], strict=False)
        return median(after - before for before, after in pairs)


def train(program: Program, state: Sequence[Any], is_over: Callable[[int], bool]) -> Trained:
    """Run steps until ``is_over`` of the number of steps that have ended."""
    under_way: deque[Sequence[Any]] = deque()
    ended_s: list[float] = []
    while not is_over(len(ended_s)):
        while len(under_way) < _AHEAD:
            state = program(*state)
            under_way.append(state)
        for array in under_way.popleft():
            array.wait(_PATIENCE_S)
        ended_s.append(time.perf_counter())
    for arrays in under_way:
        for array in arrays:
            array.wait(_PATIENCE_S)
    return Trained(tuple(ended_s[_WARM_UP:]))


def train_alone(runtime: rt.LocalRuntime, token: str, build: Build, steps: int) -> Trained:
    """Run so many steps of one tenant, and those to warm up before."""
    with rt.connect(runtime.address, token) as client:
        program, state = build(client)
        return train(program, state, lambda ended: ended >= steps + _WARM_UP + 1)


def train_together(
    runtime: rt.LocalRuntime, tenants: Sequence[tuple[str, Build]], for_s: float
) -> tuple[list[Trained], list[dict[str, Any]]]:
    """Let tenants run beside each other for a time, each named by its token; return how fast, and the trace.

    The time begins when all have ended their first steps. Only steps count that end in it.
    """
    results: list[Trained | BaseException | None] = [None] * len(tenants)
    warm = [Event() for _ in tenants]
    over = Event()

    def run(place: int, client: rt.Runtime, build: Build) -> None:
        def is_over(ended: int) -> bool:
            if ended > _WARM_UP:
                warm[place].set()
            return over.is_set()

        try:
            program, state = build(client)
            results[place] = train(program, state, is_over)
        except BaseException as error:  # raised again below, in the caller's thread
            results[place] = error
            warm[place].set()

    clients = [rt.connect(runtime.address, token) for token, _ in tenants]
    try:
        threads = [
            Thread(target=run, args=(place, client, build), name=f"tenant-{place}")
            for place, (client, (_, build)) in enumerate(zip(clients, tenants, strict=True))
        ]
        for thread in threads:
            thread.start()
        for each in warm:
            each.wait(_PATIENCE_S)
        began_s = time.perf_counter()
        time.sleep(for_s)
        ended_s = time.perf_counter()
        over.set()
        for thread in threads:
            thread.join(_PATIENCE_S)
        events = runtime.trace()
    finally:
        over.set()
        for client in clients:
            client.close()
    trained = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        assert result is not None, "a tenant has not ended"
        trained.append(Trained(tuple(each for each in result.ended_s if began_s <= each <= ended_s)))
    return trained, events
