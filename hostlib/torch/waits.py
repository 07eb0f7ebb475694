"""Sees when a process waits for its collectives: in Python's ``Work.wait``, and in functional collectives.

DDP's reducer waits elsewhere, for futures; ``measurement`` infers that from when collectives have ended.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.distributed import Work

Waited = Callable[[Any, int, int], None]
"""Called with a Work, or None, and the times at which the wait has begun and ended, in nanoseconds."""

_now_ns = time.perf_counter_ns


class WaitTee:
    """Tells of every wait, from now on until ``remove``."""

    def __init__(self, waited: Waited) -> None:
        self._plain_wait = plain = Work.wait
        self._library: Any = torch.library.Library("_c10d_functional", "IMPL")

        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            begin_ns = _now_ns()
            try:
                return plain(work, *args, **kwargs)
            finally:
                waited(work, begin_ns, _now_ns())

        overload = torch.ops._c10d_functional.wait_tensor.default
        below = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)

        def wait_tensor(keyset: Any, tensor: Any) -> Any:
            begin_ns = _now_ns()
            try:
                return overload.redispatch(keyset & below, tensor)
            finally:
                waited(None, begin_ns, _now_ns())

        Work.wait = wait
        self._library.impl("wait_tensor", wait_tensor, "BackendSelect", with_keyset=True)

    def remove(self) -> None:
        """Tell no more."""
        Work.wait = self._plain_wait
        self._library._destroy()
