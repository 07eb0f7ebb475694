"""A program as the controller of the network knows it: its flows by number, and how each was told to send."""

import asyncio
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from hostlib import Directives, FlowGroup, Nic, TaskGraph, Transfer
from hostlib.task_graph import Task
from runtime import messages
from runtime.network.transfers import Template
from runtime.server.accounts import Account
from runtime.server.instances import Instances
from runtime.server.plans import PlannedProgram

_LEAST_S = 1e-6
_NOISE_S = 5e-3
"""By how much a run may seem to take longer because the operating system lets others run in between."""

Position = tuple[int, int]
"""Of a flow: that of its group, and its own there."""


class NetworkEnd(NamedTuple):
    """Where a host sends from, and the port at which it listens there."""

    nic: Nic
    tcp_port: int


class Registration:
    """The flows of a program, each with a number.

    Attributes:
        account: Whose program it is.
        plan: The program.
        template: What was told of it.
        ends: By host, where it sends from and receives at.
        instances: Its executions that have not ended.
        flows_by_host: By host, the flows that begin there.
        unsteered: The numbers of flows that do not send from the port that they were told to.
        job: The name of the job, None: it is not registered.
        ended_s: When the last execution ended.
        has_run: Whether one has ended.
        following: Follows the directives of the job.
        is_over: Whether no further execution uses these flows.
    """

    def __init__(
        self,
        account: Account,
        plan: PlannedProgram,
        template: Template,
        ends: Mapping[int, NetworkEnd],
        instances: Instances,
        numbers: Iterator[int],
    ) -> None:
        self.account = account
        self.plan = plan
        self.template = template
        self.ends = ends
        self.instances = instances
        self.flows_by_host: dict[int, list[messages.FlowToOpen]] = {}
        self._positions: dict[int, Position] = {}
        for edge in plan.lowered.edges:
            for (source, destination), position in template.flow_of.of_edge(edge.number).items():
                opened = messages.FlowToOpen(next(numbers), edge.number, destination)
                self.flows_by_host.setdefault(source, []).append(opened)
                self._positions[opened.number] = position
        self.unsteered: set[int] = set()
        self.job: str | None = None
        self.ended_s = time.monotonic()
        self.has_run = False
        self.following: asyncio.Task[None] | None = None
        self.is_over = False
        self._ranks: dict[int, messages.FlowRank] = {}
        self._adopted_s = self._told_s = self._times_s()

    @property
    def flows(self) -> Collection[int]:
        """The numbers of its flows."""
        return self._positions.keys()

    @property
    def names(self) -> list[str]:
        """The names of its flow groups."""
        return [group.name for group in self.template.groups]

    @property
    def nics(self) -> dict[int, Nic]:
        """The NICs of its hosts."""
        return {host: end.nic for host, end in self.ends.items()}

    @property
    def pairs(self) -> Iterator[tuple[int, int]]:
        """Source and destination of each flow."""
        return ((host, each.host) for host, flows in self.flows_by_host.items() for each in flows)

    @property
    def is_ready(self) -> bool:
        """Whether it is known how long what runs takes."""
        return self.has_run or all(each.is_known for each in self.plan.functions)

    def adopt(self, template: Template) -> None:
        """Tell this template of it from now on; flows keep their numbers."""
        self.template = template
        self._positions = self._positions_in(template)
        self._ranks.clear()
        self._adopted_s = self._told_s = self._times_s()

    def groups(self) -> list[FlowGroup]:
        """Return its flow groups, whose flows are TCP to where hosts listen."""
        hosts = {self._positions[each.number]: each.host for flows in self.flows_by_host.values() for each in flows}
        return [
            FlowGroup(
                group.name,
                tuple(
                    replace(flow, tcp_port=self.ends[hosts[place, index]].tcp_port)
                    for index, flow in enumerate(group.flows)
                ),
            )
            for place, group in enumerate(self.template.groups)
        ]

    def graph_of(self, newer: Template) -> TaskGraph | None:
        """Return what a run does by another template, with the positions that flows have in the one that was told."""
        if newer.graph is None:
            return None
        there = {
            (newer.groups[group].name, index): self._positions[number]
            for number, (group, index) in self._positions_in(newer).items()
        }
        tasks: list[Task] = []
        for task in newer.graph.tasks:
            if isinstance(task, Transfer):
                positions = [there[task.flow_group, index] for index in task.flows]
                name = self.template.groups[positions[0][0]].name
                task = Transfer(name, tuple(index for _, index in positions), task.after)
            tasks.append(task)
        return TaskGraph(tuple(tasks))

    def take(self, directives: Directives) -> dict[int, list[messages.FlowRank]]:
        """Return by host what its flows have to be told, as it is not what they were told before."""
        directed = {(each.flow_group, each.flow): each for each in directives.flows}
        told: dict[int, list[messages.FlowRank]] = {}
        for host, flows in self.flows_by_host.items():
            for each in flows:
                group, index = self._positions[each.number]
                found = directed.get((self.template.groups[group].name, index))
                if found is None:
                    continue
                rank = messages.FlowRank(each.number, found.level, found.rate_bps, found.source_port)
                if rank != self._ranks.get(each.number):
                    self._ranks[each.number] = rank
                    told.setdefault(host, []).append(rank)
        return told

    def change(self) -> float:
        """Return by how much the times of functions together differ from what was told: 0.1 stands for a tenth."""
        return _difference(self._times_s(), self._told_s)

    def drift(self) -> float:
        """Return by how much they differ from those of the template, whatever was told since.

        Differences that may be noise do not count: to register anew closes connections.
        """
        return _difference(self._times_s(), self._adopted_s, noise_s=_NOISE_S)

    def note_told(self) -> None:
        """Note that the present times were told."""
        self._told_s = self._times_s()

    def _positions_in(self, template: Template) -> dict[int, Position]:
        edges = {each.edge for flows in self.flows_by_host.values() for each in flows}
        positions = {edge: template.flow_of.of_edge(edge) for edge in edges}
        return {
            each.number: positions[each.edge][source, each.host]
            for source, flows in self.flows_by_host.items()
            for each in flows
        }

    def _times_s(self) -> list[float]:
        return [max(_LEAST_S, function.seconds) for function in self.plan.functions]


def _difference(now_s: list[float], before_s: list[float], noise_s: float = 0.0) -> float:
    difference_s = sum(abs(now - before) for now, before in zip(now_s, before_s, strict=True))
    return max(0.0, difference_s - noise_s) / min(sum(now_s), sum(before_s))
