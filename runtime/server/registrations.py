"""A program as the controller of the network knows it: its flows by number, their connections and their levels."""

import asyncio
import math
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from hostlib import Directives, FiveTuple, FlowGroup, Nic, TaskGraph, Transfer
from hostlib.task_graph import Task
from runtime import messages
from runtime.network.transfers import Template
from runtime.server.accounts import Account
from runtime.server.plans import PlannedProgram

_LEAST_S = 1e-6

Position = tuple[int, int]
"""Of a flow: that of its group, and its own there."""


class Registration:
    """The flows of a program, each with a number.

    Attributes:
        account: Whose program it is.
        plan: The program.
        template: What was told of it.
        nics: By host, where it sends from and receives at.
        flows_by_host: By host, the flows that begin there.
        five_tuples: By number of a flow, the ends of its connection, as far as they are known.
        job: The name of the job, None: it is not registered.
        running: Executions that have not ended.
        waiting: Those of them that are announced once the job is registered.
        announced: The newest that was announced, -1 where it has ended for the controller.
        announced_s: When it was.
        is_pausing: Whether those that wait are announced in a moment.
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
        nics: Mapping[int, Nic],
        numbers: Iterator[int],
    ) -> None:
        self.account = account
        self.plan = plan
        self.template = template
        self.nics = nics
        self.flows_by_host: dict[int, list[messages.FlowToOpen]] = {}
        self._positions: dict[int, Position] = {}
        for edge in plan.lowered.edges:
            for (source, destination), position in template.flow_of.of_edge(edge.number).items():
                opened = messages.FlowToOpen(next(numbers), edge.number, destination)
                self.flows_by_host.setdefault(source, []).append(opened)
                self._positions[opened.number] = position
        self.five_tuples: dict[int, FiveTuple] = {}
        self.job: str | None = None
        self.running: set[int] = set()
        self.waiting: list[int] = []
        self.announced = -1
        self.announced_s = -math.inf
        self.is_pausing = False
        self.ended_s = time.monotonic()
        self.has_run = False
        self.following: asyncio.Task[None] | None = None
        self.is_over = False
        self._levels: dict[int, tuple[int, float | None]] = {}
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
    def pairs(self) -> Iterator[tuple[int, int]]:
        """Source and destination of each flow."""
        return ((host, each.host) for host, flows in self.flows_by_host.items() for each in flows)

    @property
    def is_ready(self) -> bool:
        """Whether the connections of all flows are known, and how long what runs takes."""
        is_timed = self.has_run or all(each.is_known for each in self.plan.functions)
        return is_timed and len(self.five_tuples) == len(self.flows)

    def adopt(self, template: Template) -> None:
        """Tell this template of it from now on; connections stay what they are."""
        self.template = template
        self._positions = self._positions_in(template)
        self._levels.clear()
        self._adopted_s = self._told_s = self._times_s()

    def groups(self) -> list[FlowGroup]:
        """Return its flow groups with the 5-tuples of their connections."""
        numbers = {position: number for number, position in self._positions.items()}
        return [
            FlowGroup(
                group.name,
                tuple(
                    replace(flow, five_tuple=self.five_tuples[numbers[place, index]])
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
        ranks = {(each.flow_group, each.flow): (each.level, each.rate_bps) for each in directives.flows}
        told: dict[int, list[messages.FlowRank]] = {}
        for host, flows in self.flows_by_host.items():
            for each in flows:
                group, index = self._positions[each.number]
                rank = ranks.get((self.template.groups[group].name, index))
                if rank is not None and rank != self._levels.get(each.number):
                    self._levels[each.number] = rank
                    told.setdefault(host, []).append(messages.FlowRank(each.number, *rank))
        return told

    def change(self) -> float:
        """Return by how much the times of functions together differ from what was told: 0.1 stands for a tenth."""
        return _difference(self._times_s(), self._told_s)

    def drift(self) -> float:
        """Return by how much they differ from those of the template, whatever was told since."""
        return _difference(self._times_s(), self._adopted_s)

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


def _difference(now_s: list[float], before_s: list[float]) -> float:
    differences_s = [abs(now - before) for now, before in zip(now_s, before_s, strict=True)]
    return sum(differences_s) / min(sum(now_s), sum(before_s))
