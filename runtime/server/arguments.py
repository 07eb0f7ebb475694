"""Arguments that come with a request, cut into the pieces that hosts need."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime.lowering.assign import CLIENT_HOST
from runtime.lowering.subprograms import LoweredProgram

Pieces = dict[int, list[tuple[int, int, bytes | memoryview]]]
"""By host: edge, destination shard and data."""


class _Cut(NamedTuple):
    """A piece of an argument on its way; ``slices`` is None where it is the whole."""

    node: int
    host: int
    edge: int
    shard: int
    slices: tuple[slice, ...] | None


class ArgumentPieces:
    """What becomes of the arguments of a lowered program that come with its requests."""

    def __init__(self, lowered: LoweredProgram) -> None:
        self._program = lowered.program
        self._sizes_bytes = tuple(spec.size_bytes for spec in lowered.program.arguments)
        self._cuts: list[_Cut] = []
        for edge in lowered.edges:
            if lowered.placements[edge.source_placement].hosts != (CLIENT_HOST,):
                continue
            for shard, host in enumerate(lowered.placements[edge.destination_placement].hosts):
                slices = edge.resharding.piece(0, shard).source_slices
                is_whole = all(part == slice(0, size) for part, size in zip(slices, edge.spec.shape, strict=True))
                self._cuts.append(_Cut(edge.value.node, host, edge.number, shard, None if is_whole else slices))

    def cut(self, handles: Sequence[int], payload: memoryview) -> Pieces:
        """Cut the arguments in a payload, which are those without a handle.

        Raises ValueError for a payload of another size than the program says.
        """
        data = self._data(handles, payload)
        arrays: dict[int, np.ndarray[Any, Any]] = {}
        pieces: Pieces = {}
        for node, host, edge, shard, slices in self._cuts:
            part: bytes | memoryview = data[node]
            if slices is not None:
                if node not in arrays:
                    spec = self._program.arguments[node]
                    arrays[node] = np.frombuffer(part, spec.dtype).reshape(spec.shape)
                part = arrays[node][slices].tobytes()
            pieces.setdefault(host, []).append((edge, shard, part))
        return pieces

    def _data(self, handles: Sequence[int], payload: memoryview) -> dict[int, memoryview]:
        data = {}
        offset = 0
        for node, (handle, size) in enumerate(zip(handles, self._sizes_bytes, strict=True)):
            if handle < 0:
                if offset + size > len(payload):
                    spec, name = self._program.arguments[node], self._program.name
                    raise ValueError(f"{name}: argument {node} is {spec}, and the request ends before it")
                data[node] = payload[offset : offset + size]
                offset += size
        if offset != len(payload):
            what = f"the request holds {len(payload)} bytes of arguments, expected {offset}"
            raise ValueError(f"{self._program.name}: {what}")
        return data
