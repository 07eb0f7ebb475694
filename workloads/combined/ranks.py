"""Ranks of a job with combined parallelism: their coordinates, the groups that they communicate in, and their hosts.

Ranks fill hosts in order. Coordinates grow in the usual order of Megatron-LM: tensor parallelism fastest, so that it
stays inside hosts, then context, data and pipeline parallelism; or, as in Llama 3's training, data parallelism last.
Expert parallelism divides the ranks of context and data parallelism of one stage, those next to each other together.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product


class RankOrder(StrEnum):
    """Order of coordinates, the fastest first."""

    DATA_BEFORE_PIPELINE = "tp-cp-dp-pp"
    PIPELINE_BEFORE_DATA = "tp-cp-pp-dp"


@dataclass(frozen=True, slots=True)
class Degrees:
    """How many ways a job is divided by each parallelism; expert parallelism divides context times data."""

    tensor: int
    context: int
    expert: int
    pipeline: int
    data: int

    @property
    def num_ranks(self) -> int:
        """Number of ranks, one for each GPU."""
        return self.tensor * self.context * self.pipeline * self.data


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of a job on hosts with ``per_host`` ranks each."""

    degrees: Degrees
    order: RankOrder
    hosts: tuple[str, ...]
    per_host: int

    def rank(self, tensor: int, context: int, data: int, stage: int) -> int:
        """Return the number of the rank with these coordinates."""
        degrees = self.degrees
        if self.order is RankOrder.DATA_BEFORE_PIPELINE:
            outer = data + degrees.data * stage
        else:
            outer = stage + degrees.pipeline * data
        return tensor + degrees.tensor * (context + degrees.context * outer)

    def host(self, rank: int) -> str:
        """Return the host of a rank."""
        return self.hosts[rank // self.per_host]

    def hosts_of(self, ranks: Sequence[int]) -> tuple[str, ...]:
        """Return the hosts of ranks, each once, in their order."""
        return tuple(dict.fromkeys(map(self.host, ranks)))

    def stage_hosts(self, stage: int, replicas: Sequence[int]) -> dict[str, int]:
        """Return the hosts of a pipeline stage in these replicas, in order, each with how many of its ranks it has."""
        return Counter(map(self.host, sorted(rank for data in replicas for rank in self.replica(stage, data))))

    def replica(self, stage: int, data: int) -> list[int]:
        """Return the ranks of a pipeline stage in one replica."""
        across = product(range(self.degrees.context), range(self.degrees.tensor))
        return [self.rank(tensor, context, data, stage) for context, tensor in across]

    def tensor_groups(self, stage: int, replicas: Sequence[int]) -> Iterator[list[int]]:
        """Yield the ranks that share layers."""
        for data, context in product(replicas, range(self.degrees.context)):
            yield [self.rank(tensor, context, data, stage) for tensor in range(self.degrees.tensor)]

    def context_groups(self, stage: int, replicas: Sequence[int]) -> Iterator[list[int]]:
        """Yield the ranks that share a sequence."""
        for data, tensor in product(replicas, range(self.degrees.tensor)):
            yield [self.rank(tensor, context, data, stage) for context in range(self.degrees.context)]

    def expert_groups(self, stage: int, replicas: Sequence[int]) -> Iterator[list[int]]:
        """Yield the ranks that share all experts of a layer, where these replicas hold the first of them."""
        size = self.degrees.expert
        for tensor in range(self.degrees.tensor):
            across = self._across(tensor, stage)
            for first in range(0, len(across), size):
                if first // self.degrees.context in replicas:
                    yield across[first : first + size]

    def gradient_groups(self, stage: int) -> Iterator[list[int]]:
        """Yield the ranks that have the same parameters, other than those of experts."""
        for tensor in range(self.degrees.tensor):
            yield self._across(tensor, stage)

    def expert_gradient_groups(self, stage: int) -> Iterator[list[int]]:
        """Yield the ranks that have the same experts."""
        for tensor, expert in product(range(self.degrees.tensor), range(self.degrees.expert)):
            yield self._across(tensor, stage)[expert :: self.degrees.expert]

    def _across(self, tensor: int, stage: int) -> list[int]:
        degrees = self.degrees
        across = product(range(degrees.data), range(degrees.context))
        return [self.rank(tensor, context, data, stage) for data, context in across]

    def lines(self) -> tuple[tuple[int, ...], ...]:
        """Return the replicas in groups that step together: they share hosts in a stage, or experts in every layer."""
        keys: dict[int, int] = {data: data for data in range(self.degrees.data)}

        def root(data: int) -> int:
            while keys[data] != data:
                data = keys[data]
            return data

        first: dict[object, int] = {}
        for data in range(self.degrees.data):
            met: list[object] = [
                (stage, host)
                for stage in range(self.degrees.pipeline)
                for host in self.hosts_of(self.replica(stage, data))
            ]
            met += [
                ("experts", (context + self.degrees.context * data) // self.degrees.expert)
                for context in range(self.degrees.context)
            ]
            for each in met:
                keys[root(data)] = root(first.setdefault(each, data))
        found: dict[int, list[int]] = {}
        for data in range(self.degrees.data):
            found.setdefault(root(data), []).append(data)
        return tuple(map(tuple, found.values()))

    def line_of_each_kind(self) -> tuple[tuple[int, ...], ...]:
        """Return a line for each way in which lines lie on their hosts, each of which equally many lines have."""
        kinds: dict[tuple[int, ...], tuple[int, ...]] = {}
        for line in self.lines():
            across = product(line, range(self.degrees.pipeline))
            lies = tuple(self.rank(0, 0, data, stage) % self.per_host for data, stage in across)
            kinds.setdefault(lies, line)
        return tuple(kinds.values())
