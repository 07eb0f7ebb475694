"""Names, types and sizes of collectives as PyTorch and its back ends write them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from workloads.chakra.wire import CollectiveType, NodeType
from workloads.pytorch_traces.execution_trace import INPUT_BYTES

BARRIER_NAMES = frozenset({"barrier", "allreduce_barrier", "monitored_barrier"})
NOT_COMMUNICATION = frozenset({"wait", "init", "coalesced", "", "end", "start"})
"""What is recorded with collectives and sends nothing."""
SIDES = {"send": NodeType.SEND, "recv": NodeType.RECEIVE}
"""The sides of a transfer between two ranks."""
_TYPES = {
    "allreduce": CollectiveType.ALL_REDUCE,
    "reduce": CollectiveType.REDUCE,
    "allgather": CollectiveType.ALL_GATHER,
    "gather": CollectiveType.GATHER,
    "scatter": CollectiveType.SCATTER,
    "broadcast": CollectiveType.BROADCAST,
    "alltoall": CollectiveType.ALL_TO_ALL,
    "alltoallv": CollectiveType.ALL_TO_ALL,
    "reducescatter": CollectiveType.REDUCE_SCATTER,
}
_ENDINGS = ("_base", "_into_tensor", "_tensor", "_single", "_coalesced", "_sparse", "_oop")
_ELEMENT_BYTES = {
    **dict.fromkeys(("byte", "char", "bool", "signed char", "unsigned char", "uint8", "int8"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), 1),
    **dict.fromkeys(("half", "bfloat16", "short", "short int", "c10::half", "c10::bfloat16", "uint16"), 2),
    **dict.fromkeys(("int", "float", "uint32"), 4),
    **dict.fromkeys(("long", "long int", "double", "uint64", "complexfloat", "c10::complex<float>"), 8),
    **dict.fromkeys(("complexdouble", "c10::complex<double>"), 16),
}


def plain_name(name: str) -> str:
    """Return a name without its library, underscores at its ends, and case: ``c10d::allreduce_`` is ``allreduce``."""
    return name.rpartition(":")[2].strip("_").lower()


def collective_type(name: str) -> CollectiveType | None:
    """Return what a collective does by its plain name; None: it is none, or an unknown one."""
    if name in BARRIER_NAMES:
        return CollectiveType.BARRIER
    shortened = True
    while shortened:
        shortened = False
        for ending in _ENDINGS:
            if name.endswith(ending):
                name, shortened = name[: -len(ending)], True
    return _TYPES.get(name.replace("_", ""))


def given_elements(kind: CollectiveType, inputs: int, outputs: int, num_ranks: int) -> int:
    """Return how many elements each rank gives, from how many it puts in and gets out.

    A scatter's root gives what all ranks get; others put nothing in.
    """
    if kind is CollectiveType.SCATTER:
        return outputs * num_ranks
    if kind is CollectiveType.ALL_GATHER and not inputs:
        return outputs // max(1, num_ranks)
    return inputs or outputs


def element_bytes(name: str) -> int | None:
    """Return the bytes of an element of a type; None: it is unknown."""
    return _ELEMENT_BYTES.get(name.strip().lower())


def input_bytes(arguments: Mapping[str, Any]) -> int | None:
    """Return the bytes of an operation's first tensor, or list of tensors; None: its arguments do not say them."""
    known = arguments.get(INPUT_BYTES)
    if type(known) is int:
        return known
    dimensions, types = arguments.get("Input Dims"), arguments.get("Input type")
    if not isinstance(dimensions, list) or not isinstance(types, list) or not dimensions or not types:
        return None
    size = element_bytes(str(types[0]))
    elements = _elements(dimensions[0])
    return None if size is None or elements is None else size * elements


def _elements(dimensions: Any) -> int | None:
    if not isinstance(dimensions, Sequence) or isinstance(dimensions, str) or not dimensions:
        return None
    if all(type(size) is int and size >= 0 for size in dimensions):
        return math.prod(dimensions)
    inner = [_elements(each) for each in dimensions]
    return None if None in inner else sum(each for each in inner if each is not None)
