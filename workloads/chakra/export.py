"""Task graphs as Chakra execution traces: a rank for each host.

A trace has no dependence between ranks. Where a task waits for one that its host has no part in, or for several flows,
a barrier says so. Flows are sends and receives. Durations are rounded to microseconds and sizes to bytes.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from workloads.chakra.wire import CollectiveType, Node, NodeType, file_header, framed
from workloads.task_graph import Computation, FlowSpec, TaskGraph


def write_trace(graph: TaskGraph, hosts: Sequence[str], folder: Path) -> None:
    """Write the trace of an iteration into a folder, which is made: ``trace.0.et`` is of the first host, and so on.

    Import it with ``in_order: false``: the graph says what waits for what. Raises OSError where it cannot be written.
    """
    nodes, groups = _Writing(graph, hosts).nodes()
    folder.mkdir(parents=True, exist_ok=True)
    header = file_header(0, groups)
    for rank, host in enumerate(hosts):
        (folder / f"trace.{rank}.et").write_bytes(header + b"".join(map(framed, nodes[host])))


class _Writing:
    def __init__(self, graph: TaskGraph, hosts: Sequence[str]) -> None:
        self._graph = graph
        self._rank = {host: rank for rank, host in enumerate(hosts)}
        self._nodes: dict[str, list[Any]] = {host: [] for host in hosts}
        self._groups: dict[tuple[int, ...], str] = {}
        self._flows = {group.name: group.flows for group in graph.flow_groups}

    def nodes(self) -> tuple[dict[str, list[Any]], dict[str, tuple[int, ...]]]:
        """Return the nodes of each host, and the communicators of barriers."""
        graph = self._graph
        takes_part = [self._hosts_of(number) for number in range(len(graph.tasks))]
        needed: defaultdict[int, set[str]] = defaultdict(set)
        for number, task in enumerate(graph.tasks):
            for earlier in task.after:
                needed[earlier] |= takes_part[number]
        done: list[dict[str, list[int]]] = []
        for number, task in enumerate(graph.tasks):
            after = {
                host: [node for before in task.after for node in done[before][host]] for host in takes_part[number]
            }
            if isinstance(task, Computation):
                micros = max(1, round(task.duration_s * 1e6))
                ended = {host: [self._compute(host, task.name, micros, after[host])] for host in takes_part[number]}
                is_whole = True
            else:
                flows = self._sent(number)
                ended = self._transfer(task.group, flows, after)
                is_whole = len(flows) == 1
            if needed[number] and not (is_whole and needed[number] <= takes_part[number]):
                ended = self._barrier(sorted(takes_part[number] | needed[number], key=self._rank.__getitem__), ended)
            done.append(ended)
        return self._nodes, {name: ranks for ranks, name in self._groups.items()}

    def _sent(self, number: int) -> list[FlowSpec]:
        task = self._graph.tasks[number]
        assert not isinstance(task, Computation)
        return [self._flows[task.group][flow] for flow in self._graph.flows_of(task)]

    def _hosts_of(self, number: int) -> set[str]:
        task = self._graph.tasks[number]
        if isinstance(task, Computation):
            return set(task.hosts)
        return {host for flow in self._sent(number) for host in (flow.source_host, flow.destination_host)}

    def _compute(self, host: str, name: str, micros: int, after: Iterable[int]) -> int:
        return self._add(host, NodeType.COMPUTATION, name, after, duration_micros=micros)

    def _transfer(self, group: str, flows: Iterable[FlowSpec], after: dict[str, list[int]]) -> dict[str, list[int]]:
        ended: defaultdict[str, list[int]] = defaultdict(list)
        for flow in flows:
            size_bytes = max(1, round(flow.size_bytes))
            for host, other, kind, key in (
                (flow.source_host, flow.destination_host, NodeType.SEND, "comm_dst"),
                (flow.destination_host, flow.source_host, NodeType.RECEIVE, "comm_src"),
            ):
                values = {key: self._rank[other], "comm_size": size_bytes, "comm_tag": 0}
                ended[host].append(self._add(host, kind, group, after[host], values))
        return dict(ended)

    def _barrier(self, hosts: Sequence[str], ended: dict[str, list[int]]) -> dict[str, list[int]]:
        ranks = tuple(self._rank[host] for host in hosts)
        name = self._groups.setdefault(ranks, str(len(self._groups) + 1))
        values = {"comm_type": int(CollectiveType.BARRIER), "comm_size": 0}
        return {
            host: [self._add(host, NodeType.COLLECTIVE, "barrier", ended.get(host, ()), values, name)] for host in hosts
        }

    def _add(
        self,
        host: str,
        kind: NodeType,
        name: str,
        after: Iterable[int],
        values: dict[str, int] | None = None,
        communicator: str | None = None,
        duration_micros: int = 0,
    ) -> int:
        number = len(self._nodes[host]) + 1
        node = Node(id=number, type=kind, name=name, data_deps=after, duration_micros=duration_micros)
        for key, value in (values or {}).items():
            node.attr.add(name=key, int64_val=value)
        if communicator is not None:
            node.attr.add(name="pg_name", string_val=communicator)
        node.attr.add(name="is_cpu_op", bool_val=False)
        self._nodes[host].append(node)
        return number
