"""Functions that return rows of which no bound is known, and what a runtime holds of them."""

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import runtime as rt
from tests.patience import PATIENCE_S

ROWS = rt.ArraySpec((None, 2), "float64")
same = rt.function(library="numpy", outputs=lambda x, *_: x)
double = same(lambda x: x * 2)


@rt.function(library="numpy", outputs=rt.ArraySpec((None,), "float64"))
def repeated(count: Any) -> Any:
    return np.full(int(count[0]), count[0])


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def is_empty(runtime: rt.Runtime) -> bool:
    gc.collect()
    keys = ("handles", "spilled_bytes", "stalled")
    return all(not any(host[key] for key in keys) and not any(host["device_bytes"]) for host in hosts(runtime))


def hosts(runtime: rt.Runtime) -> list[dict[str, Any]]:
    return list(runtime.status()["hosts"])
