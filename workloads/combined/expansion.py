"""The task graph of a job with combined parallelism.

Replicas that share hosts or experts step together; they are a *line*. Each line works through the pipeline's schedule:
a slot is a row of computations and of collectives that leave a host. Collectives inside hosts make computations longer.
Gradients are reduced among all lines. The stages on a host compute at the same time, each on its share of the GPUs.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Protocol, TypeVar

from workloads.combined.nccl import Collective
from workloads.combined.ranks import Degrees, Ranks
from workloads.combined.stages import Communication, Dimension, PassStep, StagePasses, cut
from workloads.combined.traffic import CollectiveTraffic
from workloads.combined_workload import CombinedWorkload
from workloads.described.description import ModelBlock
from workloads.described.timing import device_for
from workloads.parallelism.pipeline import Passage, in_order_of_dependence, input_of, name_of, output_of
from workloads.parallelism.pipeline_schedules import Slot, Step, StepKind, schedule, stage_of
from workloads.placement import Placement
from workloads.task_graph import Done, FlowSpec, GraphBuilder, TaskGraph

_BlockT = TypeVar("_BlockT")
Line = tuple[int, ...]
Passing = tuple[float, tuple[FlowSpec, ...]]
"""What a stage passes on: seconds inside hosts, and meanwhile flows between them."""
Segment = tuple[float, str, tuple[FlowSpec, ...]]
"""Seconds of computation, then flows of a group; no flows at the end of a pass."""


def degrees_on(workload: CombinedWorkload, num_gpus: int) -> Degrees:
    """Return the degrees on so many GPUs; what tensor, context and pipeline parallelism leave is data parallelism."""
    data = num_gpus // (workload.tensor * workload.context * workload.pipeline)
    return Degrees(workload.tensor, workload.context, workload.expert, workload.pipeline, data)


def ranks_on(workload: CombinedWorkload, hosts: Sequence[str], gpus_per_host: int) -> Ranks:
    """Return the ranks of a job on hosts with so many GPUs each."""
    degrees = degrees_on(workload, len(hosts) * gpus_per_host)
    return Ranks(degrees, workload.order, tuple(hosts), gpus_per_host)


def expand_combined(workload: CombinedWorkload, placement: Placement) -> TaskGraph:
    """Return the task graph of an iteration. ``workloads.combined.fitting`` says which jobs it takes."""
    builder = GraphBuilder()
    Expansion(workload, placement, builder).build()
    return builder.graph()


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass over blocks: seconds of computation, and what is sent behind it to other hosts.

    Collectives inside hosts are seconds of computation; ``inside_s`` has these seconds by dimension.
    """

    segments: tuple[Segment, ...]
    inside_s: Mapping[str, float]


class Builder(Protocol):
    """Takes tasks one by one, each behind those it waits for, as ``GraphBuilder`` does."""

    def compute(self, name: str, hosts: Sequence[str], duration_s: float, after: Done = (), share: float = 1.0) -> Done:
        """Add a computation of a share of the hosts' GPUs."""

    def send(self, group: str, flows: tuple[FlowSpec, ...], after: Done = ()) -> Done:
        """Add a transfer. Without flows nothing is added, and ``after`` is returned."""


class Expansion:
    """Builds the graph, slot by slot, with all lines in each slot, or with one of each kind (``of_each_kind``).

    ``inside_s`` has the seconds of collectives inside hosts, by place and dimension, of the first line. Each line built
    stands for ``num_alike``.
    """

    def __init__(
        self, workload: CombinedWorkload, placement: Placement, builder: Builder, *, of_each_kind: bool = False
    ) -> None:
        hosts = tuple(placement.gpus)
        ranks = ranks_on(workload, hosts, len(placement.gpus[hosts[0]]))
        self.inside_s: defaultdict[tuple[int, str], float] = defaultdict(float)
        self._workload = workload
        self._ranks = ranks
        self._traffic = CollectiveTraffic(workload, ranks, placement)
        self._passes = StagePasses(workload)
        self._builder = builder
        lines = ranks.lines()
        self._lines = ranks.line_of_each_kind() if of_each_kind else lines
        self._num_lines = len(lines)
        self.num_alike = len(lines) // len(self._lines)
        self._num_micro_batches = workload.batch // (workload.micro_batch * ranks.degrees.data)
        chunks = workload.chunks_per_stage
        self._places = {
            stage_of(workload.schedule, place, chunk, workload.pipeline): place
            for place, chunk in product(range(workload.pipeline), range(chunks))
        }
        device = device_for(workload.description, workload.device)
        self._blocks = cut(workload.description, device, workload.pipeline * chunks)
        self._last: dict[tuple[Line, int], Done] = defaultdict(tuple)
        self._previous: dict[int, Done] = defaultdict(tuple)
        self._arrived: dict[tuple[Line, Passage], Done] = defaultdict(tuple)
        self._synchronised: dict[int, Done] = defaultdict(tuple)
        self._gathered: Done = ()
        self._sent_inside: dict[tuple[Line, int], Done] = defaultdict(tuple)
        self._hosts: dict[tuple[Line, int], Mapping[float, tuple[str, ...]]] = {}
        self._passed: dict[tuple[Line, int, bool, int], Passing] = {}
        self._known: dict[tuple[object, ...], Pass] = {}
        self._exchanged: dict[tuple[object, ...], list[tuple[float, tuple[FlowSpec, ...]]]] = {}
        self._collectives: dict[tuple[object, ...], tuple[float, tuple[FlowSpec, ...]]] = {}

    def build(self) -> None:
        """Add all tasks of an iteration to the builder."""
        workload = self._workload
        kind, num_places = workload.schedule, workload.pipeline
        schedules = [
            schedule(kind, place, num_places, self._num_micro_batches, workload.chunks_per_stage)
            for place in range(num_places)
        ]
        last_steps = {
            (place, step.chunk): step
            for place, slots in enumerate(schedules)
            for slot in slots
            for step in slot
            if step.kind in (StepKind.BACKWARD, StepKind.WEIGHT_GRADIENT)
        }
        for place, slot in in_order_of_dependence(kind, schedules, self._places):
            self._slot(place, slot, {step for step in slot if last_steps.get((place, step.chunk)) == step})
        for place in range(num_places):
            self._optimize(place)
            if workload.zero in (1, 2):
                self._gather_at_the_end(place)

    def block_seconds(self, block: ModelBlock, of: Callable[[Sequence[FlowSpec]], float]) -> tuple[float, float]:
        """Return the seconds of a block for a micro-batch, forward and backward, on the place where they are fewest.

        ``of`` returns how long flows take.
        """

        def seconds(place: int, kind: StepKind) -> float:
            segments = self.a_pass(self._lines[0], place, kind, [block]).segments
            return sum(duration_s + (of(flows) if flows else 0.0) for duration_s, _, flows in segments)

        places = range(self._workload.pipeline)
        forward_s, backward_s = (
            min(seconds(place, kind) for place in places) for kind in (StepKind.FORWARD, StepKind.BACKWARD)
        )
        return forward_s, backward_s

    def _slot(self, place: int, slot: Slot, last: set[Step]) -> None:
        kind, num_places = self._workload.schedule, self._workload.pipeline
        gathered = self._gather(place, slot)
        started = tuple(done for line in self._lines for done in self._last[line, place])
        for line in self._lines:
            after = self._last[line, place] + gathered
            for step in slot:
                if step.kind is not StepKind.WEIGHT_GRADIENT:
                    after += self._arrived.pop((line, input_of(kind, place, step, num_places)), ())
            self._last[line, place] = after
        for step in slot:
            self._compute(place, step, is_last=step in last)
            output = output_of(kind, place, step, num_places)
            if output is not None and output[1] in self._places:
                for line in self._lines:
                    self._pass_on(line, place, output)
        self._previous[place] = started

    def _compute(self, place: int, step: Step, *, is_last: bool) -> None:
        """Add a step in all lines; with the gradients of each bucket behind it if they are exchanged now."""
        blocks = self._blocks[stage_of(self._workload.schedule, place, step.chunk, self._workload.pipeline)]
        makes_gradients = step.kind in (StepKind.BACKWARD, StepKind.WEIGHT_GRADIENT)
        exchanges = makes_gradients and (is_last or self._workload.zero >= 2)
        buckets = buckets_of(blocks, self._workload.buckets) if exchanges else [blocks]
        for number, bucket in enumerate(buckets):
            name = name_of(step) + (f" part {number}" if len(buckets) > 1 else "")
            for line in self._lines:
                a_pass = self.a_pass(line, place, step.kind, bucket)
                self._play(line, place, name, a_pass.segments)
                if line == self._lines[0]:
                    for dimension, inside_s in a_pass.inside_s.items():
                        self.inside_s[place, dimension] += inside_s
            if exchanges:
                self._exchange_gradients(place, bucket)

    def _steps(self, kind: StepKind, blocks: Sequence[ModelBlock]) -> Iterable[PassStep]:
        match kind:
            case StepKind.FORWARD:
                return self._passes.forward(blocks)
            case StepKind.BACKWARD:
                return self._passes.backward(blocks)
            case StepKind.INPUT_GRADIENT:
                return self._passes.backward(blocks, share=0.5)
        return [self._passes.weight_gradient(blocks)]

    def a_pass(self, line: Line, place: int, kind: StepKind, blocks: Sequence[ModelBlock]) -> Pass:
        """Return a pass over blocks in a line."""
        key = (line, place, kind, blocks[0].name, len(blocks))
        if key not in self._known:
            segments: list[Segment] = []
            in_all_s: defaultdict[str, float] = defaultdict(float)
            duration_s = 0.0
            for step in self._steps(kind, blocks):
                if isinstance(step, float):
                    duration_s += step
                    continue
                inside_s, flows = self._collective(line, place, step)
                duration_s += inside_s
                in_all_s[step.dimension] += inside_s
                if flows:
                    segments.append((duration_s, f"{step.dimension} {self._name_of(line, place)}", flows))
                    duration_s = 0.0
            self._known[key] = Pass((*segments, (duration_s, "", ())), in_all_s)
        return self._known[key]

    def _collective(self, line: Line, place: int, step: Communication) -> tuple[float, tuple[FlowSpec, ...]]:
        """Return how long a collective takes inside hosts, and its flows between them."""
        key = (line, place, step)
        if key not in self._collectives:
            groups = list(self._groups(line, place, step.dimension))
            inside_s = self._traffic.inside_s(step.collective, groups, step.size_bytes)
            self._collectives[key] = inside_s, self._traffic.between(step.collective, groups, step.size_bytes)
        return self._collectives[key]

    def _play(self, line: Line, place: int, name: str, segments: Iterable[Segment]) -> None:
        """Add segments one after the other."""
        for duration_s, group, flows in segments:
            self._compute_for(line, place, name, duration_s)
            if flows:
                self._last[line, place] = self._builder.send(group, flows, self._last[line, place])

    def _compute_for(self, line: Line, place: int, name: str, duration_s: float) -> None:
        if duration_s:
            after = self._last[line, place]
            done: Done = ()
            for share, hosts in self._hosts_of(line, place).items():
                of_place = name if share == 1 else f"{name} of stage {place}"
                done += self._builder.compute(of_place, hosts, duration_s, after, share)
            self._last[line, place] = done

    def _groups(self, line: Line, place: int, dimension: Dimension) -> Iterable[Sequence[int]]:
        match dimension:
            case Dimension.TENSOR:
                return self._ranks.tensor_groups(place, line)
            case Dimension.CONTEXT:
                return self._ranks.context_groups(place, line)
            case Dimension.EXPERT:
                return self._ranks.expert_groups(place, line)

    def _pass_on(self, line: Line, place: int, output: Passage) -> None:
        """Send what a step gives to the stage that needs it; every rank to the one in its place."""
        is_forward, stage, _ = output
        receiver = self._places[stage]
        done = self._last[line, place]
        if receiver != place:
            key = (line, place, is_forward, stage)
            if key not in self._passed:
                self._passed[key] = self._passing(line, place, receiver, stage - 1 if is_forward else stage)
            inside_s, flows = self._passed[key]
            name = f"{'forward' if is_forward else 'backward'} {self._name_of(line, place)}>{receiver}"
            arrives = self._send_inside(line, place, f"{name} inside hosts", inside_s) if inside_s else ()
            arrives += self._builder.send(name, flows, done) if flows else ()
            done = arrives or done
        self._arrived[line, output] = done

    def _send_inside(self, line: Line, place: int, name: str, inside_s: float) -> Done:
        """Add a transfer inside hosts, behind the one before: a GPU sends one at a time, and computes meanwhile."""
        after = self._last[line, place] + self._sent_inside[line, place]
        hosts = tuple(host for hosts in self._hosts_of(line, place).values() for host in hosts)
        done = self._builder.compute(name, hosts, inside_s, after, 0.0)
        self._sent_inside[line, place] = done
        return done

    def _passing(self, line: Line, place: int, receiver: int, stage: int) -> Passing:
        """Return what is between this stage and the next one, from every rank to the one in its place."""
        size_bytes = self._passes.passed_bytes(self._blocks[stage])
        sent: defaultdict[tuple[str, str], float] = defaultdict(float)
        for data in line:
            ranks = self._ranks
            for source, destination in zip(ranks.replica(place, data), ranks.replica(receiver, data), strict=True):
                sent[ranks.host(source), ranks.host(destination)] += size_bytes
        between = {pair: each for pair, each in sent.items() if pair[0] != pair[1]}
        inside_s = self._traffic.send_inside_s(size_bytes) if len(between) < len(sent) else 0.0
        return inside_s, self._traffic.flows(between.items())

    def _hosts_of(self, line: Line, place: int) -> Mapping[float, tuple[str, ...]]:
        """Return the hosts of a line's stage by the share of their GPUs that it has."""
        key = (line, place)
        if key not in self._hosts:
            by_share: defaultdict[float, list[str]] = defaultdict(list)
            for host, num_ranks in self._ranks.stage_hosts(place, line).items():
                by_share[num_ranks / self._ranks.per_host].append(host)
            self._hosts[key] = {share: tuple(hosts) for share, hosts in by_share.items()}
        return self._hosts[key]

    def _exchange_gradients(self, place: int, blocks: Sequence[ModelBlock]) -> None:
        """Reduce the gradients of blocks among all replicas, behind the exchange before."""
        collective = Collective.REDUCE_SCATTER if self._workload.zero else Collective.ALL_REDUCE
        after = tuple(done for line in self._lines for done in self._last[line, place]) + self._synchronised[place]
        self._synchronised[place] = self._among_replicas(place, f"gradients {place}", collective, blocks, after)

    def _among_replicas(
        self, place: int, name: str, collective: Collective, blocks: Sequence[ModelBlock], after: Done
    ) -> Done:
        """Add a collective of the parameters' bytes among replicas; inside hosts it takes the GPUs' time."""
        done = after
        for inside_s, flows in self._exchanges(place, collective, blocks):
            self.inside_s[place, "data"] += inside_s
            for line in self._lines if inside_s else ():
                self._compute_for(line, place, f"{name} inside hosts", inside_s)
                done += self._last[line, place]
            done = self._builder.send(name, flows, done)
        return done

    def _exchanges(
        self, place: int, collective: Collective, blocks: Sequence[ModelBlock]
    ) -> Sequence[tuple[float, tuple[FlowSpec, ...]]]:
        """Return the seconds inside hosts and the flows of a collective of parameters, and of experts' parameters."""
        key = (place, collective, blocks[0].name, len(blocks))
        if key not in self._exchanged:
            dense_bytes, expert_bytes = self._passes.gradient_bytes_of(blocks)
            self._exchanged[key] = self.exchange(place, collective, dense_bytes, expert_bytes)
        return self._exchanged[key]

    def exchange(
        self, place: int, collective: Collective, dense_bytes: float, expert_bytes: float
    ) -> list[tuple[float, tuple[FlowSpec, ...]]]:
        """Return the seconds inside hosts and the flows of a collective among replicas, then of one of experts."""
        traffic, ranks = self._traffic, self._ranks
        sizes = (
            (list(ranks.gradient_groups(place)), dense_bytes),
            (list(ranks.expert_gradient_groups(place)), expert_bytes),
        )
        return [
            (traffic.inside_s(collective, groups, of_bytes), traffic.between(collective, groups, of_bytes))
            for groups, of_bytes in sizes
            if of_bytes
        ]

    def _gather(self, place: int, slot: Slot) -> Done:
        """Gather parameters before a slot that needs them (ZeRO-3), once the slot before the last has ended."""
        if self._workload.zero < 3:
            return ()
        done: Done = ()
        for step in slot:
            if step.kind is not StepKind.WEIGHT_GRADIENT:
                blocks = self._blocks[stage_of(self._workload.schedule, place, step.chunk, self._workload.pipeline)]
                name = f"parameters {place}"
                done += self._among_replicas(place, name, Collective.ALL_GATHER, blocks, self._previous[place])
        return done

    def _optimize(self, place: int) -> None:
        """Add the optimizer's step, when a stage's gradients are all reduced."""
        degrees = self._ranks.degrees
        duration_s = self._passes.optimizer_s(self._blocks_at(place), degrees.data * degrees.context)
        if duration_s:
            for line in self._lines:
                self._last[line, place] += self._synchronised[place]
                self._compute_for(line, place, "optimizer", duration_s)
            self._synchronised[place] = tuple(done for line in self._lines for done in self._last[line, place])

    def _gather_at_the_end(self, place: int) -> None:
        """Gather new parameters (ZeRO-1, ZeRO-2) when the optimizer has made them."""
        blocks, after = self._blocks_at(place), self._synchronised[place]
        self._among_replicas(place, f"parameters {place}", Collective.ALL_GATHER, blocks, after)

    def _blocks_at(self, place: int) -> list[ModelBlock]:
        return [block for stage, at in sorted(self._places.items()) if at == place for block in self._blocks[stage]]

    def _name_of(self, line: Line, place: int) -> str:
        return f"{place}" if self._num_lines == 1 else f"{place} of replica {line[0]}"


def buckets_of(blocks: Sequence[_BlockT], number: int) -> list[Sequence[_BlockT]]:
    """Return blocks in at most so many runs of about equal length, the last ones first."""
    number = min(number, len(blocks))
    bounds = [len(blocks) * place // number for place in range(number + 1)]
    runs = [blocks[first:last] for first, last in pairwise(bounds)]
    return list(reversed(runs))
