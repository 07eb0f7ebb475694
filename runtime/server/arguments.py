"""Arguments that come with a request, cut into the pieces that hosts need."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.lowering.assign import CLIENT_HOST
from runtime.lowering.subprograms import LoweredProgram
from runtime.program import Program

Pieces = dict[int, list[tuple[int, int, bytes]]]
"""By host: edge, destination shard and data."""


def pieces_of_arguments(lowered: LoweredProgram, handles: Sequence[int], payload: memoryview) -> Pieces:
    """Cut the arguments in a payload, which are those without a handle.

    Raises ValueError for a payload of another size than the program says.
    """
    arrays = _arrays(lowered.program, handles, payload)
    pieces: Pieces = {}
    for edge in lowered.edges:
        if lowered.placements[edge.source_placement].hosts != (CLIENT_HOST,):
            continue
        array, resharding = arrays[edge.value.node], edge.resharding
        for shard, host in enumerate(lowered.placements[edge.destination_placement].hosts):
            part = array[resharding.piece(0, shard).source_slices]
            pieces.setdefault(host, []).append((edge.number, shard, part.tobytes()))
    return pieces


def _arrays(program: Program, handles: Sequence[int], payload: memoryview) -> dict[int, np.ndarray[Any, Any]]:
    arrays = {}
    offset = 0
    for node, (handle, spec) in enumerate(zip(handles, program.arguments, strict=True)):
        if handle < 0:
            if offset + spec.size_bytes > len(payload):
                raise ValueError(f"{program.name}: argument {node} is {spec}, and the request ends before it")
            data = payload[offset : offset + spec.size_bytes]
            arrays[node] = np.frombuffer(data, spec.dtype).reshape(spec.shape)
            offset += spec.size_bytes
    if offset != len(payload):
        raise ValueError(f"{program.name}: the request holds {len(payload)} bytes of arguments, expected {offset}")
    return arrays
