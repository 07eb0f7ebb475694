"""Arrays on their way to the client."""

import math
from threading import Lock
from typing import Any

import numpy as np

from runtime import messages
from runtime.arrays import ArraySpec, Sharding
from runtime.client.requests import error_of
from runtime.errors import RuntimeFailure
from runtime.frames import Frame


class Arrival:
    """An array on its way to the client, shard by shard, or only the news that it is there.

    ``rows`` are those of its largest shard, where no bound was known before, and -1 otherwise.
    """

    def __init__(self, spec: ArraySpec, sharding: Sharding, data: bool) -> None:
        self.has_data = data
        self.rows = -1
        self._spec = spec
        self._sharding = sharding
        self._left = sharding.shards if data and sharding.axis is not None else 1
        self._whole = np.empty(spec.shape, spec.dtype) if data and not spec.is_ragged else None
        self._ragged: dict[int, np.ndarray[Any, Any]] = {}
        self._error: RuntimeFailure | None = None
        self._is_under_way = Lock()
        self._is_under_way.acquire()
        self._taking = Lock()
        self._has_ended = False

    def result(self, timeout_s: float | None) -> "np.ndarray[Any, Any] | None":
        """Wait for it, and return its data if they come.

        Raises why there are none, and TimeoutError.
        """
        if not self._is_under_way.acquire(timeout=-1 if timeout_s is None else max(0.0, timeout_s)):
            raise TimeoutError
        self._is_under_way.release()  # others may wait, too
        try:
            if self._error is not None:
                raise self._error
            return self._whole
        finally:
            del self  # it has the error, whose traceback has this frame

    def take(self, message: object, frame: Frame | None) -> bool:
        """Take a shard, or the news that there will be none; return whether nothing more is to come.

        Any thread may call this: what comes after the end, such as that of the connection, is ignored.
        """
        with self._taking:
            if not self._has_ended and self._ends_with(message, frame):
                self._has_ended = True
                self._is_under_way.release()
            return self._has_ended

    def _ends_with(self, message: object, frame: Frame | None) -> bool:
        if isinstance(message, messages.Fetched) and frame is not None:
            if self.has_data:
                self._put(message.shard, frame.payload)
            self.rows = message.rows
            self._left -= 1
            if self._left == 0:
                ragged = [self._ragged[shard] for shard in sorted(self._ragged)]
                if ragged:
                    self._whole = np.concatenate(ragged)
            return self._left == 0
        self._error = message.failure.error() if isinstance(message, messages.FetchFailed) else error_of(message)
        return True

    def _put(self, shard: int, payload: bytearray | memoryview) -> None:
        spec, sharding = self._spec, self._sharding
        shape, data = sharding.shard_spec(spec).shape, np.frombuffer(payload, spec.dtype)
        if self._whole is None:
            self._ragged[shard] = data.reshape(len(data) // max(1, math.prod(shape[1:])), *shape[1:])
            return
        data = data.reshape(shape)
        if sharding.axis is None:
            self._whole[...] = data
        else:
            indices = sharding.indices(spec, shard)
            where = (slice(None),) * sharding.axis + (slice(indices.start, indices.stop),)
            self._whole[where] = data
