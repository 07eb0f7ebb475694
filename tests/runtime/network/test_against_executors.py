"""Templates of drawn programs, held against what executors send and a naive run."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from hostlib import Computation, Transfer
from hostlib.task_graph import check_sends
from runtime.arrays import ITEM_BYTES, ArraySpec, Sharding
from runtime.lowering.assign import AT_CLIENT, Layout, Placement
from runtime.lowering.subprograms import HostPlan, LoweredProgram, lower
from runtime.network.transfers import Template, template
from runtime.program import Call, Input, Output, Program, Value
from tests.runtime.network.islands import nics
from workloads import task_graph
from workloads.arrangement import ZeroCommunicationRun, arranged

SPEC = ArraySpec((12, 12), "int16")
_SIZES = (1, 2, 3, 4)


@dataclass(frozen=True)
class Drawn:
    lowered: LoweredProgram
    seconds: tuple[float, ...]
    template: Template | None

    def duration_s(self, node: int) -> float:
        return self.seconds[node]


@st.composite
def placements(draw: st.DrawFn) -> dict[int, Placement]:
    """Up to four slices on up to three islands of two hosts with two devices each; they may share devices."""
    found = {}
    for number in range(draw(st.integers(2, 4))):
        island = draw(st.integers(0, 2))
        places = [(2 * island + host, device) for host in range(2) for device in range(2)]
        chosen = draw(st.permutations(places))[: draw(st.sampled_from(_SIZES))]
        hosts, devices = zip(*chosen, strict=True)
        found[number] = Placement(f"i{island}", hosts, devices)
    return found


@st.composite
def programs(draw: st.DrawFn) -> Drawn:
    slices = draw(placements())
    axes = st.sampled_from((None, 0, 1))
    number = st.sampled_from(sorted(slices))
    layouts = []
    for _ in range(draw(st.integers(1, 2))):
        of = slices[draw(number)]
        layouts.append(draw(st.sampled_from((AT_CLIENT, Layout(Sharding(draw(axes), len(of.hosts)), of)))))
    calls = []
    for node in range(len(layouts), len(layouts) + draw(st.integers(1, 8))):
        on = draw(number)
        shards = len(slices[on].hosts)
        taken = draw(st.lists(st.integers(0, node - 1), min_size=1, max_size=3))
        inputs = tuple(Input(Value(each), Sharding(draw(axes), shards)) for each in taken)
        calls.append(Call(0, f"call {node}", on, inputs, (Output(SPEC, Sharding(draw(axes), shards)),)))
    program = Program("drawn", (SPEC,) * len(layouts), tuple(calls), (Value(len(layouts)),))
    lowered = lower(program, slices, layouts)
    seconds = (0.0,) * len(layouts) + tuple(draw(st.integers(1, 5)) / 4 for _ in calls)
    return Drawn(lowered, seconds, template(lowered, seconds.__getitem__, nics(slices)))


def sent_between_islands(lowered: LoweredProgram) -> Counter[tuple[int, int, int]]:
    """Bytes by (edge, source shard, destination shard), as the hosts of a lowered program send them."""
    islands = {host: placement.island for placement in lowered.placements for host in placement.hosts}
    found: Counter[tuple[int, int, int]] = Counter()
    for host, number in lowered.subprogram_of_host.items():
        for sends in HostPlan(lowered.subprograms[number], host).sends.values():
            for send in sends:
                if islands[host] != islands[send.host]:
                    rows, columns = (part.stop - part.start for part in send.piece.source_slices)
                    key = send.edge, send.piece.source, send.piece.destination
                    found[key] += rows * columns * ITEM_BYTES[SPEC.dtype]
    return found


def naive_starts_s(drawn: Drawn) -> dict[int, float]:
    """Let devices run their calls one at a time, in the order of the program, event by event."""
    queues: dict[tuple[int, int], list[int]] = {}
    gangs = {}
    for placed in drawn.lowered.calls:
        placement = drawn.lowered.placements[placed.placement]
        gangs[placed.node] = list(zip(placement.hosts, placement.devices, strict=True))
        for device in gangs[placed.node]:
            queues.setdefault(device, []).append(placed.node)
    ends_s = dict.fromkeys(range(len(drawn.lowered.program.arguments)), 0.0)
    starts_s: dict[int, float] = {}
    now_s = 0.0
    while any(queues.values()):
        for node, gang in gangs.items():
            makers = (given.value.node for given in drawn.lowered.program.call(node).inputs)
            is_next = node not in starts_s and all(queues[device][0] == node for device in gang)
            if is_next and all(ends_s.get(maker, now_s + 1) <= now_s for maker in makers):
                starts_s[node], ends_s[node] = now_s, now_s + drawn.seconds[node]
        now_s = min(end_s for end_s in ends_s.values() if end_s > now_s)
        for queue in queues.values():
            if queue and ends_s.get(queue[0], now_s + 1) <= now_s:
                queue.pop(0)
    return starts_s


@given(programs())
def test_every_piece_between_islands_has_a_flow_with_its_bytes(drawn: Drawn) -> None:
    sent = sent_between_islands(drawn.lowered)
    if drawn.template is None:
        assert not sent
        return
    flow_of = dict(drawn.template.flow_of)
    assert flow_of.keys() == sent.keys()
    sizes: Counter[tuple[int, int]] = Counter()
    for key, size_bytes in sent.items():
        sizes[flow_of[key]] += size_bytes
    for group_number, group in enumerate(drawn.template.groups):
        for number, flow in enumerate(group.flows):
            assert sizes.pop((group_number, number)) == flow.size_bytes
    assert not sizes


@given(programs())
def test_a_flow_belongs_to_one_edge_and_one_pair_of_hosts(drawn: Drawn) -> None:
    if drawn.template is None:
        return
    edges = {edge.number: edge for edge in drawn.lowered.edges}
    owners: dict[tuple[int, int], tuple[int, int, int]] = {}
    for (number, source, destination), flow in drawn.template.flow_of.items():
        edge = edges[number]
        source_host = drawn.lowered.placements[edge.source_placement].hosts[source]
        destination_host = drawn.lowered.placements[edge.destination_placement].hosts[destination]
        owner = number, source_host, destination_host
        assert owners.setdefault(flow, owner) == owner
        assert drawn.template.flow_of.of_edge(number)[source_host, destination_host] == flow
        registered = drawn.template.groups[flow[0]].flows[flow[1]]
        assert (registered.source.host, registered.destination.host) == (f"h{source_host}", f"h{destination_host}")
    assert len(set(owners.values())) == len(owners)


@given(programs())
def test_offsets_are_those_of_a_naive_run(drawn: Drawn) -> None:
    if drawn.template is None:
        return
    starts_s = naive_starts_s(drawn)
    edges = {edge.number: edge for edge in drawn.lowered.edges}
    needed_s: dict[tuple[int, int], float] = {}
    released_s: dict[tuple[int, int], float] = {}
    for (number, _, _), flow in drawn.template.flow_of.items():
        needed_s[flow] = min(starts_s[node] for node, _ in edges[number].takers)
        maker = edges[number].value.node
        released_s[flow] = starts_s.get(maker, 0.0) + drawn.seconds[maker]
    for number, group in enumerate(drawn.template.groups):
        head_s = min(of for (of_group, _), of in needed_s.items() if of_group == number)
        assert [flow.offset_s for flow in group.flows] == [
            needed_s[number, position] - head_s for position in range(len(group.flows))
        ]
        releases_s = [released_s[number, position] for position in range(len(group.flows))]
        assert releases_s == sorted(releases_s)
    assert drawn.template.profile.compute_s == max(start + drawn.seconds[node] for node, start in starts_s.items())
    first_s = min(released_s.values())
    assert drawn.template.profile.comm_start == first_s / drawn.template.profile.compute_s
    assert drawn.template.profile.work == sum(
        drawn.seconds[placed.node] * len(drawn.lowered.placement(placed.node).hosts) for placed in drawn.lowered.calls
    )


@given(programs())
def test_the_graph_plays_the_program(drawn: Drawn) -> None:
    if drawn.template is None:
        return
    assert drawn.template.graph is not None
    check_sends(drawn.template.graph, drawn.template.groups)
    played = as_played(drawn.template)
    run = ZeroCommunicationRun.of(played)
    assert run.duration_s == drawn.template.profile.compute_s
    starts_s = [start_s for start_s, task in zip(run.start_s, played.tasks, strict=True) if is_computation(task)]
    assert starts_s == [start_s for _, start_s in sorted(naive_starts_s(drawn).items())]
    for group, found in zip(drawn.template.groups, arranged(played).flow_groups, strict=True):
        assert [flow.offset_s for flow in group.flows] == [flow.offset_s for flow in found.flows]


def is_computation(task: task_graph.Task) -> bool:
    return isinstance(task, task_graph.Computation)


def as_played(found: Template) -> task_graph.TaskGraph:
    """The graph of a template as simulated jobs have it."""
    assert found.graph is not None
    tasks: list[task_graph.Task] = []
    for task in found.graph.tasks:
        if isinstance(task, Transfer):
            tasks.append(task_graph.GroupTransfer(task.flow_group, task.after, task.flows))
        else:
            assert isinstance(task, Computation)
            tasks.append(task_graph.Computation("call", ("all",), task.duration_s, task.after))
    groups = (
        task_graph.FlowGroupSpec(
            group.name,
            tuple(
                task_graph.FlowSpec(
                    *(flow.source.host, flow.source.index, flow.destination.host, flow.destination.index),
                    flow.size_bytes,
                )
                for flow in group.flows
            ),
        )
        for group in found.groups
    )
    return task_graph.TaskGraph(tuple(tasks), tuple(groups))
