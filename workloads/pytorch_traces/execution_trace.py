"""Execution traces of PyTorch: what they say of collectives that the profile of the same rank does not.

They have no durations. A node and an event are the same operation where ``rf_id`` is the ``Record function id``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from topologies.files import shown_path
from topologies.printable import quoted
from workloads.chakra.wire import ChakraError
from workloads.pytorch_traces.profile import listed_ranks

INPUT_BYTES = "Input bytes"
"""The argument of an event that has the bytes of its first tensor, or list of tensors."""
_COMMUNICATES = ("record_param_comms", "c10d::", "gloo:", "nccl:", "rccl:")
_PARAMETERS = {
    "collective_name": "Collective name",
    "dtype": "dtype",
    "in_msg_nelems": "In msg nelems",
    "out_msg_nelems": "Out msg nelems",
    "pg_name": "Process Group Name",
    "pg_size": "Group size",
}
_TENSOR_FIELDS = 6
"""Identity, storage, offset, number of elements, bytes of an element, device."""


@dataclass(frozen=True, slots=True)
class Described:
    """Arguments of operations by their ``Record function id``, and ranks of process groups by name."""

    arguments: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def read_execution_trace(document: Mapping[str, Any], path: Path, rank: int) -> Described:
    """Return what a document says. Raises ChakraError, which names file, rank and node."""
    nodes = document.get("nodes")
    if not isinstance(nodes, list):
        raise ChakraError(f"{shown_path(path)}: rank {rank}: nodes is no list")
    arguments: dict[int, dict[str, Any]] = {}
    groups: dict[str, tuple[int, ...]] = {}
    for node in nodes:
        name = node.get("name") if isinstance(node, dict) else None
        if not isinstance(name, str):
            raise ChakraError(f"{shown_path(path)}: rank {rank}: a node has no name: {quoted(str(node)[:80])}")
        if name.startswith("## process_group:init"):
            groups |= _groups(node)
        if not name.startswith(_COMMUNICATES):
            continue
        attributes = _attributes(node)
        number = attributes.get("rf_id")
        if type(number) is not int:
            raise ChakraError(f"{shown_path(path)}: rank {rank}, node {node.get('id')}: rf_id is missing")
        found = {_PARAMETERS[key]: value for key, value in attributes.items() if key in _PARAMETERS}
        size_bytes = sum(_tensor_bytes(_inputs(node)[:1]))
        if size_bytes:
            found[INPUT_BYTES] = size_bytes
        arguments[number] = found
    return Described(arguments, groups)


def _attributes(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node's attributes, which versions before 1.0.2 have beside its name."""
    listed = node.get("attrs")
    if not isinstance(listed, list):
        return dict(node)
    return {str(each.get("name")): each.get("value") for each in listed if isinstance(each, dict)}


def _inputs(node: Mapping[str, Any]) -> list[Any]:
    inputs = node.get("inputs")
    values = inputs.get("values") if isinstance(inputs, dict) else inputs
    return values if isinstance(values, list) else []


def _tensor_bytes(value: Any) -> Iterator[int]:
    """Yield the bytes of each tensor in a value."""
    if not isinstance(value, list):
        return
    numbers = value[3:5]
    if len(value) == _TENSOR_FIELDS and isinstance(value[5], str) and all(type(each) is int for each in numbers):
        yield numbers[0] * numbers[1]
        return
    for each in value:
        yield from _tensor_bytes(each)


def _groups(node: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the process groups that a node describes; no ranks stand for all."""
    groups: dict[str, tuple[int, ...]] = {}
    try:
        for group in json.loads(str(_inputs(node)[0])):
            ranks = listed_ranks(group["ranks"])
            if ranks is not None:
                groups[str(group["pg_name"])] = ranks
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return {}
    return groups
