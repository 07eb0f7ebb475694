"""The network of a run on the simulator, which carries transfers as fluid flows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from controller.planning.decision import Decision
from experiments.scenarios.connections import Connections, GroupKey
from experiments.scenarios.outages import Outages
from experiments.scenarios.results import LoadSample
from experiments.scenarios.routes import LAST_TIER, Route, RouteTable, network_of
from experiments.scenarios.transfers import Instance, Instances, RetransmissionTimers, TransferEnd
from policies.enforcement import Allocator, Cadence, RateControl, Tiers
from policies.flows import FlowKey
from policies.model.bundles import Bundles
from policies.model.picoseconds import PS_PER_S
from policies.open_groups import OpenFlows, OpenGroups
from policies.policy import Policy
from policies.rates.loads import remaining_by_link
from policies.rates.network import FloatArray, IntArray, Order
from simulator.fluid import NO_BUNDLE, NUM_LEVELS, Fluid, allocation
from topologies.addressing import FiveTuple
from topologies.routing import Routing
from topologies.steering import Steering
from workloads.jobs import TrainingJob
from workloads.replay import StartTransfer
from workloads.task_graph import GroupTransfer

_WITHOUT_DUE_TIMES = (Allocator.MAX_MIN, Allocator.MADD, Allocator.ORDER_GREEDY)
_IDLE = (0.0,) * NUM_LEVELS


@dataclass(frozen=True, slots=True)
class _Bundle:
    """Flows of one transfer with the same route, size and offset; ``numbers`` are their positions in the group.

    Where links may fail, a bundle is a single flow with its ``five_tuple``.
    """

    key: GroupKey
    task: int
    route: Route
    size_bytes: float
    offset_s: float
    five_tuple: FiveTuple | None
    numbers: tuple[int, ...]


class SimulatedNetwork:
    """The simulated fabric that carries a run's flows.

    Every transfer has template bundles, from which it starts, and bundles under way. A new Plan moves the latter to
    their new routes; where source ports steer, they keep their old port until the next transfer. Where links
    ``may_fail``, each flow takes the route on which switches forward it now, whatever the Plan says, and flows are not
    bundled.
    """

    def __init__(
        self,
        routing: Routing,
        jobs: Sequence[TrainingJob],
        connections: Connections,
        policy: Policy,
        control: RateControl,
        steering: Steering,
        *,
        may_fail: bool = False,
    ) -> None:
        fabric = routing.fabric
        self._fabric = fabric
        self._may_fail = may_fail
        self._retransmissions = RetransmissionTimers()
        self._policy = policy
        self._control = control
        self._steering = steering
        self._jobs = {job.name: job for job in jobs}
        self._specifications = {(job.name, group.name): group.flows for job in jobs for group in job.graph.flow_groups}
        self._number_of = {key: number for number, key in enumerate(self._specifications)}
        self._instances = Instances(self._specifications)
        self._transfers: defaultdict[GroupKey, list[int]] = defaultdict(list)
        for job in jobs:
            for number, task in enumerate(job.graph.tasks):
                if isinstance(task, GroupTransfer):
                    self._transfers[job.name, task.group].append(number)
        self._capacities_bps = np.array(fabric.rates_bps)
        self._delays_s = np.array([link.delay_s for link in fabric.links] + [0.0] * len(fabric.host_links))
        self._routes = RouteTable(routing, self._specifications, connections, control.tiers, may_fail=may_fail)
        self._templates: dict[str, list[_Bundle]] = {}
        self._under_way: set[int] = set()
        self._open: tuple[GroupKey, ...] = ()
        self._bundles: list[_Bundle] = []
        self._of_transfer: dict[tuple[str, int], IntArray] = {}
        self.fluid = Fluid(self._table(), allocation(control.allocator))
        self._sampled_ps = 0
        self._sampled_bytes = self.fluid.carried_bytes()

    @property
    def now_ps(self) -> int:
        """Virtual time."""
        return self.fluid.now_ps

    def start(self, job: str, transfers: Sequence[StartTransfer]) -> None:
        """Start sending the flows of transfers now."""
        if job not in self._templates:
            self._templates[job] = self._bundles_of(job)
            self._rebuild(self._bundles_under_way())
        self._instances.start(job, transfers, self.now_ps / PS_PER_S)
        numbers = np.concatenate([self._of_transfer[job, transfer.task] for transfer in transfers])
        self._under_way.update(numbers.tolist())
        self.fluid.start(numbers, self._sent_bytes[numbers])
        self._pause_lost()
        self._order_groups()

    async def run(self, until_ps: int) -> list[TransferEnd]:
        """Advance time until something arrives, at most to ``until_ps``; return the transfers that end then."""
        ends = []
        arrived = self.fluid.run(min(until_ps, self._retransmissions.next_try_ps))
        if due := self._retransmissions.pop_due(self.now_ps):
            self.fluid.resume(np.array(due))
        self._under_way.difference_update(arrived)
        together: dict[tuple[str, int], list[_Bundle]] = {}
        for number in arrived:
            bundle = self._bundles[number]
            together.setdefault((bundle.key[0], bundle.task), []).append(bundle)
        for (_, task), bundles in together.items():
            num_flows = sum(len(bundle.numbers) for bundle in bundles)
            offset_s = min(bundle.offset_s for bundle in bundles)
            key = bundles[0].key
            end = self._instances.arrive_together(key, task, num_flows, offset_s, self.now_ps / PS_PER_S)
            if end is not None:
                ends.append(end)
        if arrived:
            self._order_groups()
        return ends

    def follow(self, decision: Decision, routing: Routing) -> None:
        """Route flows as a decision says, whose rules the switches hold now, over its base routing.

        Jobs that the decision does not know and that have no open flow group are removed.
        """
        changed = self._routes.apply(decision, routing)
        decided = {job.name for job in decision.snapshot.jobs}
        busy = {job for job, _ in self._instances.open}
        self._reroute(changed, self._templates.keys() - decided - busy)

    def apply(self, outages: Outages) -> None:
        """Take these elements down, and bring all others up; raises ValueError unless links ``may_fail``."""
        self._reroute(self._routes.set_down(outages.links), set())

    def _reroute(self, changed: Set[str], gone: Set[str]) -> None:
        """Apply the new routes of jobs, and remove the jobs that are gone."""
        if not (changed or gone):
            return
        for job in gone:
            del self._templates[job]
        for job in changed & self._templates.keys():
            self._templates[job] = self._bundles_of(job)
        self._rebuild(self._rerouted())
        self._open = ()
        self._order_groups()

    def sample_loads(self) -> LoadSample:
        """Return the utilisation of every link by level since the last sample."""
        now_ps, carried = self.fluid.now_ps, self.fluid.carried_bytes()
        interval_s = max(1, now_ps - self._sampled_ps) / PS_PER_S
        rows = [_IDLE] * len(self._fabric.links)
        used = np.flatnonzero((carried != self._sampled_bytes)[: len(rows)].any(axis=1))
        sent_bytes = carried[used] - self._sampled_bytes[used]
        busy = sent_bytes * 8 / self._capacities_bps[used, np.newaxis] / interval_s
        for link, row in zip(used.tolist(), busy.tolist(), strict=True):
            rows[link] = tuple(row)
        sample = LoadSample(self._sampled_ps / PS_PER_S, now_ps / PS_PER_S, tuple(rows))
        self._sampled_ps, self._sampled_bytes = now_ps, carried
        return sample

    def _pause_lost(self) -> None:
        """Pause flows whose packets are lost."""
        if not self._may_fail:
            return
        numbers = sorted({*self.fluid.active.tolist(), *self._retransmissions.waiting})
        routes = {number: self._bundles[number].route for number in numbers}
        if lost := self._retransmissions.update(routes, self.now_ps):
            self.fluid.pause(np.array(lost))

    def _bundles_of(self, job: str) -> list[_Bundle]:
        """Return the template bundles of all transfers of a job."""
        graph = self._jobs[job].graph
        bundles = []
        for task, transfer in enumerate(graph.tasks):
            if isinstance(transfer, GroupTransfer):
                key = job, transfer.group
                alike: defaultdict[tuple[Route, float, float, FiveTuple | None], list[int]] = defaultdict(list)
                for number in graph.flows_of(transfer):
                    flow, flow_key = self._specifications[key][number], FlowKey(*key, number)
                    five_tuple = self._routes.five_tuple(flow_key)
                    alike[self._routes[flow_key], flow.size_bytes, flow.offset_s, five_tuple].append(number)
                bundles += [_Bundle(key, task, *of, tuple(numbers)) for of, numbers in alike.items()]
        return bundles

    def _bundles_under_way(self) -> Iterator[tuple[int, _Bundle]]:
        """Yield the bundles under way, unchanged."""
        for number in sorted(self._under_way):
            yield number, self._bundles[number]

    def _rerouted(self) -> Iterator[tuple[int, _Bundle]]:
        """Yield the bundles under way, split by the routes that their flows have now."""
        for number, bundle in self._bundles_under_way():
            alike: defaultdict[Route, list[int]] = defaultdict(list)
            for flow in bundle.numbers:
                route = self._routes[FlowKey(*bundle.key, flow)]
                if self._steering is Steering.SOURCE_PORT:
                    route = self._routes.forwarded(replace(route, path=bundle.route.path), bundle.five_tuple)
                alike[route].append(flow)
            for route, flows in alike.items():
                yield number, replace(bundle, route=route, numbers=tuple(flows))

    def _rebuild(self, under_way: Iterable[tuple[int, _Bundle]]) -> None:
        """Rebuild the fluid model with the templates, and with bundles under way that have these old numbers."""
        live = list(under_way)
        first = sum(map(len, self._templates.values()))
        table = self._table([bundle for _, bundle in live])
        self.fluid.replace_bundles(
            table, np.array([NO_BUNDLE] * first + [number for number, _ in live], dtype=np.int64)
        )
        self._under_way = set(range(first, first + len(live)))
        self._retransmissions.renumber({first + place: number for place, (number, _) in enumerate(live)})
        self._pause_lost()

    def _table(self, live: Sequence[_Bundle] = ()) -> Bundles:
        """Build the table of bundles: templates first, then those under way."""
        self._bundles = [bundle for bundles in self._templates.values() for bundle in bundles]
        of_transfer: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for number, bundle in enumerate(self._bundles):
            of_transfer[bundle.key[0], bundle.task].append(number)
        self._of_transfer = {key: np.array(numbers) for key, numbers in of_transfer.items()}
        self._bundles += live
        bundles = self._bundles
        self._group_of = np.array([self._number_of[bundle.key] for bundle in bundles], dtype=np.int64)
        self._sent_bytes = np.array([bundle.size_bytes * len(bundle.numbers) for bundle in bundles], dtype=np.float64)
        self._offsets_s = np.array([bundle.offset_s for bundle in bundles], dtype=np.float64)
        routes = [bundle.route for bundle in self._bundles]
        latencies_ps = [round(self._delays_s[list(route.path)].sum() * PS_PER_S) for route in routes]
        return Bundles(
            network_of(self._fabric, routes),
            weights=np.array([len(bundle.numbers) for bundle in self._bundles], dtype=np.float64),
            tiers=np.array([route.tier for route in routes], dtype=np.int64),
            levels=np.array([route.level for route in routes], dtype=np.int64),
            latency_ps=np.array(latencies_ps, dtype=np.int64),
        )

    def _order_groups(self) -> None:
        """Where tiers are flow groups, rank the open ones again, as often as the policy's cadence asks for."""
        if self._control.tiers is not Tiers.GROUPS:
            return
        instances = self._instances.open
        if self._control.cadence is Cadence.GROUP_EVENT and self._open == tuple(instances):
            return
        self._open = tuple(instances)
        place = np.full(len(self._number_of), len(instances))
        place[[self._number_of[key] for key in instances]] = np.arange(len(instances))
        group_of = place[self._group_of]
        # A group is known in full: its later transfers count in its rank before they start.
        unreleased = np.array(
            [number for key, one in instances.items() for number in self._unreleased(key, one)], np.int64
        )
        waiting = np.array(sorted(self._retransmissions.waiting), dtype=np.int64)
        known = np.union1d(self.fluid.active, np.concatenate((unreleased, waiting)))
        groups = np.unique(group_of[known])
        remaining_bytes = self.fluid.settled_bytes().copy()
        remaining_bytes[unreleased] = self._sent_bytes[unreleased]
        order = Order.by_rank(known, group_of[known])
        network = self.fluid.bundles.network
        started_s = np.array([instance.started_s for instance in instances.values()])
        needs_due_times = self._control.allocator not in _WITHOUT_DUE_TIMES
        due_s = self._due_s(started_s, group_of) if needs_due_times else np.zeros(len(group_of))

        def seconds_by_link() -> csr_array:
            by_link = remaining_by_link(network, order, remaining_bytes)
            by_link.data *= 8 / self._capacities_bps[by_link.indices]
            return by_link

        due_in_s = due_s - self.now_ps / PS_PER_S if needs_due_times else due_s
        flows = OpenFlows(network, order, remaining_bytes, due_in_s)
        assert self._policy.order_groups is not None  # as tiers are groups
        ranked = self._policy.order_groups(OpenGroups(started_s[groups], seconds_by_link, flows))
        tiers = np.full(len(instances) + 1, LAST_TIER)
        tiers[groups[ranked]] = np.arange(len(groups))
        self.fluid.reorder(tiers[group_of], due_s)

    def _due_s(self, started_s: FloatArray, group_of: IntArray) -> FloatArray:
        """Return when each bundle may end without making its group later than it is."""
        late_s = np.array([max(instance.tardiness_s, 0.0) for instance in self._instances.open.values()])
        return np.append(started_s + late_s, 0.0)[group_of] + self._offsets_s

    def _unreleased(self, key: GroupKey, instance: Instance) -> Iterator[int]:
        """Yield the bundles of transfers that an open group has not started yet."""
        for task in self._transfers[key]:
            if task not in instance.released:
                yield from self._of_transfer[key[0], task].tolist()
