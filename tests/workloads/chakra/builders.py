"""Chakra traces for tests, written node by node."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workloads.chakra.wire import CollectiveType, Metadata, Node, NodeType, framed


def compute(number: int, micros: int, *after: int, is_cpu: bool = False, **attributes: int) -> Any:
    node = Node(id=number, type=NodeType.COMPUTATION, name="work", data_deps=after, duration_micros=micros)
    return _with(node, attributes, is_cpu)


def collective(
    number: int, kind: CollectiveType, size_bytes: int, *after: int, group: str | None = None, **attributes: int
) -> Any:
    node = Node(id=number, type=NodeType.COLLECTIVE, name="collective", ctrl_deps=after)
    if group is not None:
        node.attr.add(name="pg_name", string_val=group)
    return _with(node, {"comm_type": int(kind), "comm_size": size_bytes} | attributes)


def send(number: int, to: int, size_bytes: int, *after: int, tag: int = 0) -> Any:
    node = Node(id=number, type=NodeType.SEND, name="send", data_deps=after)
    return _with(node, {"comm_dst": to, "comm_size": size_bytes, "comm_tag": tag})


def receive(number: int, of: int, size_bytes: int, *after: int, tag: int = 0) -> Any:
    node = Node(id=number, type=NodeType.RECEIVE, name="receive", data_deps=after)
    return _with(node, {"comm_src": of, "comm_size": size_bytes, "comm_tag": tag})


def described_groups(number: int, text: str) -> Any:
    node = Node(id=number, type=NodeType.METADATA, name="process_group:init")
    node.inputs.values = text
    return node


def write(folder: Path, *ranks: Sequence[Any]) -> Path:
    folder.mkdir(exist_ok=True)
    for rank, nodes in enumerate(ranks):
        content = b"".join(map(framed, (Metadata(version="0.0.4"), *nodes)))
        (folder / f"trace.{rank}.et").write_bytes(content)
    return folder


def _with(node: Any, attributes: Mapping[str, int], is_cpu: bool = False) -> Any:
    for name, value in attributes.items():
        node.attr.add(name=name, int64_val=value)
    node.attr.add(name="is_cpu_op", bool_val=is_cpu)
    return node
