"""Explanations worked out one pair of jobs at a time, as the definition says, to compare with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from controller.api.messages import path_message
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.states import flow_state, job_state, rule_state
from controller.planning.decision import Decision
from controller.registry.jobs import RegisteredJob
from controller.rules.job_rules import levels_in_force
from controller.telemetry.planned_loads import PlannedLoads
from policies.arrays import BoolArray, FloatArray
from policies.flows import Flow
from policies.intensity import Demand, demand
from policies.plan import JobPlan
from policies.snapshot import OrderKeeper
from topologies.fabric import Fabric, Path


class PlainExplainer:
    """Explains the jobs and flows of one decision, job by job and link by link."""

    def __init__(self, decision: Decision, fabric: Fabric) -> None:
        self._decision = decision
        self._fabric = fabric
        self._rates_bps = decision.snapshot.links.rates_bps
        self._plans: Mapping[str, JobPlan] = {plan.name: plan for plan in decision.plan.jobs}

    def explain_flow(self, flow: Flow) -> wire.Explanation:
        """Explain the path and the level of a flow."""
        chosen = self._path(flow)
        foreign = self._decision.snapshot.foreign_utilisation
        others = self._planned + foreign
        others[list(chosen)] -= flow.size_bytes * self._per_byte(self._demands[flow.key.job])[list(chosen)]
        return self._explanation(
            flow=wire.FlowExplanation(
                state=flow_state(flow, self._decision, self._fabric),
                candidates=[
                    wire.Candidate(
                        path=path_message(path, self._fabric),
                        chosen=path == chosen,
                        hashed=path == flow.hashed_path,
                        others_utilisation=max(0.0, float(others[list(path)].max())),
                        foreign_utilisation=float(foreign[list(path)].max()),
                    )
                    for path in flow.candidates
                ],
                links=[self._link_use(link) for link in chosen],
                rules=[
                    rule_state(rule, self._fabric)
                    for link in chosen[1:]
                    for rule in self._decision.rules.get(self._fabric.links[link].source, ())
                    if rule.five_tuple == flow.five_tuple
                ],
            )
        )

    def explain_job(self, job: RegisteredJob, lease_s: float, profile: wire.ProfileState) -> wire.Explanation:
        """Explain the rank and the level of a job."""
        name = job.request.name
        own, plan = self._demands[name], self._plans[name]
        plan = replace(plan, level=levels_in_force(self._decision.plan, self._decision.snapshot)[name])
        return self._explanation(
            job=wire.JobExplanation(
                state=job_state(job, lease_s, profile, plan),
                jobs=len(self._plans),
                reason=plan.reason,
                work=own.job.profile.work,
                communication_s=own.iteration.comm_s,
                alone_iteration_s=own.iteration.duration_s,
                bottleneck=self._bottleneck(own),
                neighbours=self._neighbours(own, OrderKeeper.SWITCH_QUEUE),
                host_neighbours=self._neighbours(own, OrderKeeper.HOST),
                tasks=None if own.job.task_graph is None else len(own.job.task_graph.tasks),
                is_guessed=own.job.task_graph is not None and own.job.task_graph.is_guessed,
            )
        )

    def _explanation(
        self, job: wire.JobExplanation | None = None, flow: wire.FlowExplanation | None = None
    ) -> wire.Explanation:
        return wire.Explanation(
            policy=self._decision.plan.policy, plan_number=self._decision.number, job=job, flow=flow
        )

    def _bottleneck(self, own: Demand) -> wire.LinkUse | None:
        if own.iteration.comm_s == 0:
            return None
        return self._link_use(int(np.argmax(own.bytes_by_link / self._rates_bps)))

    def _neighbours(self, own: Demand, keeper: OrderKeeper) -> list[wire.Neighbour]:
        """The jobs that share links with this one where ``keeper`` orders flows, in order of rank."""
        kept = np.array([link.order_keeper is keeper for link in self._decision.snapshot.links], dtype=np.bool_)
        others = (plan for plan in self._decision.plan.jobs if plan.name != own.job.name)
        return [found for plan in others if (found := self._neighbour(own, plan, kept)) is not None]

    def _neighbour(self, own: Demand, plan: JobPlan, counts: BoolArray) -> wire.Neighbour | None:
        both = (own.bytes_by_link > 0) & (self._demands[plan.name].bytes_by_link > 0)
        shared = np.flatnonzero(both & counts)
        if not len(shared):
            return None
        busiest = int(shared[np.argmax(self._planned[shared])])
        return wire.Neighbour(
            name=plan.name,
            rank=plan.rank,
            level=plan.level,
            shared_links=len(shared),
            busiest=self._link_use(busiest),
        )

    def _link_use(self, index: int) -> wire.LinkUse:
        link = self._fabric.link(index)
        return wire.LinkUse(
            source=link.source,
            destination=link.destination,
            parallel=self._fabric.parallel_index(index),
            rate_bps=float(self._rates_bps[index]),
            planned_utilisation=float(self._planned[index]),
            jobs=[plan.name for plan in self._decision.plan.jobs if self._demands[plan.name].bytes_by_link[index] > 0],
        )

    def _path(self, flow: Flow) -> Path:
        return self._decision.plan.flows[flow.key].path or flow.hashed_path

    def _paths(self, flow: Flow) -> Sequence[Path]:
        return (self._path(flow),)

    @cached_property
    def _demands(self) -> Mapping[str, Demand]:
        return {job.name: demand(job, self._rates_bps, self._paths) for job in self._decision.snapshot.jobs}

    @cached_property
    def _planned(self) -> FloatArray:
        """The planned utilisation of every link."""
        return PlannedLoads.of(self._decision.snapshot, self._decision.plan).utilisation

    def _per_byte(self, own: Demand) -> FloatArray:
        """The utilisation that a byte per iteration of a job adds to each link."""
        return 8 / self._rates_bps / own.iteration.duration_s if own.iteration.comm_s > 0 else 0 * self._rates_bps
