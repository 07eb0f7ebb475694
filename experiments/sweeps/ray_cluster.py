"""Work on a Ray cluster whose machines have Trainyard installed; needs the extra ``ray``."""

import signal
import socket
from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from experiments.sweeps.execution import Answers, Failure, R, T, attempt

_KNOCK_S = 10.0


class ClusterError(Exception):
    """A cluster that cannot be reached."""


def require_ray() -> None:
    """Raise ModuleNotFoundError where Ray is not installed."""
    import_module("ray")


def on_ray(work: Callable[[T], R], items: Sequence[T], address: str, workers: int | None) -> Answers[T, R]:
    """Do the work as Ray tasks of one core each, so many at a time.

    ``address`` is as ``ray.init`` has it: HOST:PORT, ``ray://HOST:PORT``, ``auto`` or ``local``. Without ``workers``
    twice as many as the cluster has cores are handed over, so that none is idle and a cluster that can grow does. A
    task whose machine is lost runs again, three times at the most. Raises ClusterError.
    """
    import ray

    at_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        _knock(address)
        ray.init(address=address, log_to_driver=False, logging_level="WARNING", configure_logging=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise ClusterError(f"{address}: no Ray cluster answers: {error}") from error
    # Ray puts its own in place, with a stack trace and another exit status.
    signal.signal(signal.SIGTERM, at_sigterm)
    try:
        remote = ray.remote(attempt)
        waiting = deque(items)
        running: dict[Any, T] = {}
        while waiting or running:
            most = workers or 2 * int(ray.cluster_resources().get("CPU", 1))
            while waiting and len(running) < most:
                item = waiting.popleft()
                running[remote.remote(work, item)] = item
            ready, _ = ray.wait(list(running))
            for reference in ready:
                try:
                    answer = ray.get(reference)
                except ray.exceptions.RayError as error:
                    answer = Failure(" ".join(str(error).split()))
                yield running.pop(reference), answer
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Raise OSError where nobody listens: Ray itself tries for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK_S).close()
