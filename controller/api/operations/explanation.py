"""Explains why a job has its rank and a flow its path: their demands, the jobs they share links with, the other paths.

All of it follows from a Decision, whatever policy made it. The planned utilisation of a link is the rate at which all
planned flows send over it, as if each job had the fabric to itself, divided by the rate of the link. Above 1, jobs wait
for one another.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from controller.api.errors import NothingToExplainError
from controller.api.messages import path_message
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.compression_states import compression_states
from controller.api.operations.link_users import LinkUsers
from controller.api.operations.states import flow_state, job_state, rule_state
from controller.planning.decision import Decision
from controller.planning.path_names import path_name
from controller.planning.pinned_plan import held_pins
from controller.registry.jobs import RegisteredJob
from controller.rules.job_rules import levels_in_force
from policies.arrays import FloatArray
from policies.elastic import reliable_rates_bps
from policies.flows import Flow, FlowKey
from policies.pins import LevelPin, Pin
from policies.plan import JobPlan
from policies.snapshot import OrderKeeper
from topologies.fabric import Fabric, Path
from topologies.printable import quoted

_NAMES_LISTED = 8


class Explainer:
    """Explains the jobs and flows of one decision. It takes long to make, and can be used by any thread."""

    def __init__(self, decision: Decision, fabric: Fabric) -> None:
        self.decision = decision
        self._fabric = fabric
        self._rates_bps = decision.snapshot.links.rates_bps
        self._plans: Mapping[str, JobPlan] = {plan.name: plan for plan in decision.plan.jobs}
        self._places = {plan.name: place for place, plan in enumerate(decision.plan.jobs)}
        self._numbers = {job.name: number for number, job in enumerate(decision.snapshot.jobs)}
        self._levels = levels_in_force(decision.plan, decision.snapshot)
        self._links = LinkUsers.of(decision)
        self._pins: Mapping[str | FlowKey, Pin] = {
            pin.job if isinstance(pin, LevelPin) else pin.flow: pin for pin in held_pins(decision.snapshot)
        }
        self._reliable_bps = reliable_rates_bps(decision.snapshot, decision.plan)

    def has_job(self, name: str) -> bool:
        """Whether a job is in the Plan."""
        return name in self._plans

    def explain_flow(self, flow: Flow, now_s: float) -> wire.Explanation:
        """Explain the path and the level of a flow."""
        chosen = self.path_of(flow)
        foreign = self.decision.snapshot.foreign_utilisation
        others = self._links.utilisation + foreign
        others[list(chosen)] -= flow.size_bytes * self._per_byte(flow.key.job)[list(chosen)]
        return self._explanation(
            flow=wire.FlowExplanation(
                state=flow_state(flow, self.decision, self._fabric),
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
                    for rule in self.decision.rules.get(self._fabric.links[link].source, ())
                    if rule.five_tuple == flow.five_tuple
                ],
                pin=self._pin(flow.key, now_s),
            )
        )

    def explain_job(
        self,
        job: RegisteredJob,
        lease_s: float,
        profile: wire.ProfileState,
        reasons: Mapping[str, str],
        now_s: float,
    ) -> wire.Explanation:
        """Explain the rank and the level of a job; it has given ``reasons`` for what its flow groups send."""
        name = job.request.name
        number, plan = self._numbers[name], replace(self._plans[name], level=self._levels[name])
        iteration = self._links.iterations[number]
        planned = self.decision.snapshot.jobs[number]
        graph = planned.task_graph
        links: dict[int, int] = {}
        return self._explanation(
            job=wire.JobExplanation(
                state=job_state(job, lease_s, profile, plan),
                jobs=len(self._plans),
                reason=plan.reason,
                work=planned.profile.work,
                communication_s=iteration.comm_s,
                alone_iteration_s=iteration.duration_s,
                bottleneck=self._bottleneck(number),
                neighbours=self._neighbours(name, OrderKeeper.SWITCH_QUEUE, links),
                host_neighbours=self._neighbours(name, OrderKeeper.HOST, links),
                tasks=None if graph is None else len(graph.tasks),
                is_guessed=graph is not None and graph.is_guessed,
                compressed=compression_states(planned, self._reliable_bps, reasons),
                pin=self._pin(name, now_s),
            ),
            links=[self._link_use(link) for link in links],
        )

    def _pin(self, of: str | FlowKey, now_s: float) -> wire.PinState | None:
        """The pin of a job or of a flow, where one holds in the Plan and has not expired since."""
        pin = self._pins.get(of)
        if pin is None or pin.until_s <= now_s:
            return None
        state = wire.PinState(left_s=pin.until_s - now_s, by=pin.by, holds=True)
        if isinstance(pin, LevelPin):
            state.MergeFrom(wire.PinState(name=pin.job, level=pin.level))
        else:
            name = "/".join(map(str, pin.flow))
            state.MergeFrom(wire.PinState(name=name, path=path_name(pin.path, self._fabric)))
        return state

    def _explanation(
        self,
        job: wire.JobExplanation | None = None,
        flow: wire.FlowExplanation | None = None,
        links: Sequence[wire.LinkUse] = (),
    ) -> wire.Explanation:
        return wire.Explanation(
            policy=self.decision.plan.policy,
            plan_number=self.decision.number,
            job=job,
            flow=flow,
            jobs=self._plans,
            links=links,
        )

    def _bottleneck(self, number: int) -> wire.LinkUse | None:
        if self._links.iterations[number].comm_s == 0:
            return None
        return self._link_use(int(np.argmax(self._links.loads.of(number) / self._rates_bps)))

    def _neighbours(self, name: str, keeper: OrderKeeper, links: dict[int, int]) -> list[wire.Neighbour]:
        """The jobs that share links with one where ``keeper`` orders flows, in order of rank.

        The links where it meets them are added to ``links``, each with its place there.
        """
        kept = np.array([link.order_keeper is keeper for link in self.decision.snapshot.links], dtype=np.bool_)
        plans = self.decision.plan.jobs
        return [
            wire.Neighbour(
                name=plans[met.place].name,
                rank=plans[met.place].rank,
                level=plans[met.place].level,
                shared_links=met.shared_links,
                busiest_link=links.setdefault(met.busiest_link, len(links)),
            )
            for met in self._links.meetings(self._numbers[name], self._places[name], kept)
        ]

    def _link_use(self, index: int) -> wire.LinkUse:
        link = self._fabric.link(index)
        return wire.LinkUse(
            source=link.source,
            destination=link.destination,
            parallel=self._fabric.parallel_index(index),
            rate_bps=float(self._rates_bps[index]),
            planned_utilisation=float(self._links.utilisation[index]),
            places=self._links.places_on(index),
        )

    def path_of(self, flow: Flow) -> Path:
        """The path of a flow: the one of the Plan, or else of the hash."""
        return self.decision.plan.flows[flow.key].path or flow.hashed_path

    def _per_byte(self, job: str) -> FloatArray:
        """The utilisation that a byte per iteration of a job adds to each link."""
        iteration = self._links.iterations[self._numbers[job]]
        return 8 / self._rates_bps / iteration.duration_s if iteration.comm_s > 0 else 0 * self._rates_bps


def find_flow(decision: Decision, name: str) -> Flow:
    """Find the flow that JOB/GROUP/NUMBER names. Raises NothingToExplainError."""
    for job in decision.snapshot.jobs:
        if not name.startswith(f"{job.name}/"):
            continue
        names = {f"{job.name}/{flow.key.group}/{flow.key.flow}": flow for flow in job.registered_flows}
        if name in names:
            return names[name]
        raise NothingToExplainError(
            f"the plan in force has no flow {quoted(name)}; {quoted(job.name)} has {_listed(names)}"
        )
    jobs = _listed(job.name for job in decision.snapshot.jobs)
    raise NothingToExplainError(f"the plan in force has no job {quoted(name.partition('/')[0])}; it has {jobs}")


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _NAMES_LISTED} more" if len(listed) > _NAMES_LISTED else ""
    return (", ".join(listed[:_NAMES_LISTED]) or "none") + more
