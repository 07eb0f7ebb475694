"""Work on a Ray cluster whose machines have Trainyard installed. It needs the extra ``ray``."""

import signal
import socket
from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from experiments.sweeps.processes import Answers, Failure, R, T, attempt

_CONNECT_TIMEOUT_S = 10.0


class ClusterError(Exception):
    """No Ray cluster answers."""


def require_ray() -> None:
    """Check that Ray is installed.

    Raises:
        ModuleNotFoundError: It is not.
    """
    import_module("ray")


def on_ray(work: Callable[[T], R], items: Sequence[T], address: str, workers: int | None) -> Answers[T, R]:
    """Do the work as Ray tasks of one core each, ``workers`` at a time.

    Without ``workers`` there are twice as many tasks as the cluster has cores, which keeps all of them busy and lets an
    autoscaling cluster grow. A task whose machine is lost runs again, at most three times.

    Args:
        work: A function that every machine can import.
        items: What to apply it to.
        address: As ``ray.init`` takes it: HOST:PORT, ``ray://HOST:PORT``, ``auto`` or ``local``.
        workers: How many tasks run at a time.

    Raises:
        ClusterError: No cluster answers at the address.
    """
    import ray

    at_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        _require_listener(address)
        ray.init(address=address, log_to_driver=False, logging_level="WARNING", configure_logging=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise ClusterError(f"{address}: no Ray cluster answers: {error}") from error
    # Ray installs a handler of its own, which prints a stack trace and ends with another exit status.
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


def _require_listener(address: str) -> None:
    """Raise OSError where nothing listens; Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
