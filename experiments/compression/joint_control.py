"""Trainyard's controller beside jobs in virtual time: the product's registry, decision pipeline and directives.

A job that compresses tells what it sends as ``hostlib.torch`` does, and is directed as by it.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

from controller.planning.decision_pipeline import DecisionPipeline
from controller.planning.directives import JobDirectives, directives_of
from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import (
    FlowGroupRequest,
    FlowRequest,
    InstanceRequest,
    JobRequest,
    NicReference,
    Sent,
    TaskGraphRequest,
    TransferRequest,
)
from experiments.compression.sending import bucket_of, dense_plan, sendings
from experiments.compression.shared_star import Served, host_rates_bps
from experiments.compression.star import HOSTS, PAIRS, Pattern
from experiments.compression.timeline import FORWARD_SHARE, Job, Step
from hostlib.compression.agreement import Proposal
from hostlib.compression.control.cost import MeasuredCosts, transmission_cost
from hostlib.compression.telling import Telling
from policies.job import Profile
from policies.plan import Plan
from policies.policy import decide
from policies.registry import load_policy
from policies.task_graph import Computation
from topologies.ecmp import hash_multipliers
from topologies.graph import GraphSpecification, LinkSpecification
from topologies.routing import Routing

GROUP = "gradients"
_SWITCH = "s0"


class JointControl:
    """A controller and the jobs that tell it what they send.

    Args:
        jobs: The jobs.
        compressing: Numbers of those that can compress.
        rate_bps: Of the slow hosts' links.
        policy: The name of the controller's policy.
    """

    def __init__(self, jobs: Sequence[Job], compressing: frozenset[int], rate_bps: float, policy: str) -> None:
        fabric = GraphSpecification(
            kind="graph",
            hosts=tuple(f"h{host}" for host in range(HOSTS)),
            switches=(_SWITCH,),
            links=tuple(
                LinkSpecification(ends=(f"h{host}", _SWITCH), gbps=host_bps / 1e9)
                for host, host_bps in enumerate(host_rates_bps(rate_bps))
            ),
        ).build()
        self._policy = load_policy(policy)
        self._pipeline = DecisionPipeline(lambda snapshot: decide(self._policy, snapshot))
        self._routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
        self._registry = Registry(fabric, lease_s=float("inf"))
        self._snapshots = Snapshots(self._registry, self._routing, num_levels=8, seed=1)
        self._jobs = jobs
        self._tellings = {number: Telling() for number in compressing}
        self._shares: dict[int, list[float]] = {number: [] for number in compressing}
        self._previous: Plan | None = None
        self._directives: dict[int, JobDirectives] = {}
        for number, job in enumerate(jobs):
            self._register(number, job)
        self.decisions = 0
        self._decide(0.0)

    @property
    def served(self) -> list[Served]:
        """How the jobs are served under the Plan in force."""
        found = []
        for number in range(len(self._jobs)):
            flow = self._directives[number].flows[0]
            found.append(Served(flow.level, flow.order))
        return found

    def observe(
        self, number: int, now_s: float, step: Step, proposal: Proposal
    ) -> tuple[Proposal, list[Served] | None]:
        """See ``shared_star.Observe``."""
        if number not in self._tellings:
            return proposal, None
        self._shares[number].append(_share_sent(self._jobs[number], step))
        served, telling = None, self._tellings[number]
        if telling.is_due(now_s):
            share = mean(self._shares[number])
            self._shares[number] = []
            if telling.update(now_s, share):
                served = self._told(number, share, now_s)
        return self._directed(number, proposal), served

    def _told(self, number: int, share: float, now_s: float) -> list[Served]:
        """Be told what share of its gradients a job sends; return how all jobs are served then."""
        size_bytes = round(share * sum(_dense_flows_bytes(self._jobs[number])))
        instance = InstanceRequest(self.decisions, sent=Sent(size_bytes))
        self._registry.update_instances(_name(number), {GROUP: instance}, now_s)
        self._decide(now_s)
        return self.served

    def _directed(self, number: int, proposal: Proposal) -> Proposal:
        """Return what a rank proposes that has these directives."""
        directives = self._directives[number]
        rates_bps = [flow.rate_bps for flow in directives.flows if flow.rate_bps is not None]
        slack_s = max(0.0, directives.slacks_s[GROUP] - _window_s(self._jobs[number]))
        return replace(proposal, rate_bps=min(rates_bps), slack_s=slack_s) if rates_bps else proposal

    def _register(self, number: int, job: Job) -> None:
        name, window_s = _name(number), _window_s(job)
        release_s = job.compute_s - window_s
        hosts = tuple(f"h{host}" for host in range(HOSTS))
        profile = Profile(job.compute_s, release_s / job.compute_s, HOSTS * job.compute_s)
        self._registry.register_job(JobRequest(name, hosts, HOSTS, profile), now_s=0.0)
        flows = tuple(
            FlowRequest(NicReference(f"h{source}", 0), NicReference(f"h{sink}", 0), size_bytes, 0.0)
            for (source, sink), size_bytes in zip(PAIRS[Pattern.RING], _dense_flows_bytes(job), strict=True)
        )
        graph = TaskGraphRequest(
            (Computation(release_s), TransferRequest(GROUP, (), (0,)), Computation(window_s, (0,)))
        )
        self._registry.register_flow_groups(name, [FlowGroupRequest(GROUP, flows)], graph)

    def _decide(self, now_s: float) -> None:
        snapshot = self._snapshots.take(now_s, self._previous, self._routing)
        self._previous = self._pipeline.decide(snapshot)
        draft = self._pipeline.draft(snapshot, self._previous, self._routing)
        self.decisions += 1
        decision = self._pipeline.finish(self.decisions, draft, frozenset(), self._routing)
        directives = directives_of(decision)
        self._directives = {number: directives[_name(number)] for number in range(len(self._jobs))}


def _name(number: int) -> str:
    return f"job{number}"


def _window_s(job: Job) -> float:
    """Return how long gradients hide behind the backward pass, from the first bucket on."""
    return (1 - FORWARD_SHARE) * job.compute_s * (1 - job.model.buckets[0].ready_share)


def _dense_flows_bytes(job: Job) -> list[int]:
    """Return what each flow of the ring sends in an iteration of plain all-reduces."""
    dense = sendings(dense_plan(job.model.buckets), job.model.buckets, job.table)
    size_bytes = round(sum(transfer.flow_bytes for sending in dense for transfer in sending.transfers))
    return [size_bytes] * HOSTS


def _share_sent(job: Job, step: Step) -> float:
    """Return what a rank sent in a step, over what it would have sent uncompressed."""
    buckets = list(map(bucket_of, job.model.buckets))
    none = MeasuredCosts()
    choices = list(zip(step.plan, buckets, strict=True))
    if step.remainder is not None:
        choices.append((step.remainder, buckets[-1]))
    sent = sum(transmission_cost(choice, bucket, none).out_bytes for choice, bucket in choices)
    return sent / sum(transmission_cost(bucket.dense_choice, bucket, none).out_bytes for bucket in buckets)
