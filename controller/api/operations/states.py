"""The states of jobs, flows, rules, switches and links as messages for operators. Pure functions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from controller.api.messages import path_message
from controller.api.operations import operations_pb2 as wire
from controller.links.cable_words import cable_words
from controller.links.link_health import DeadCable, LinkState, links_of
from controller.planning.decision import Decision
from controller.profiling.measured import ProfilingResults
from controller.registry.jobs import RegisteredJob
from controller.rules.flow_rules import FlowRule
from controller.rules.job_rules import levels_in_force
from controller.southbound.southbound import SwitchCondition, SwitchStatus
from policies.flows import Flow
from policies.plan import JobPlan
from topologies.fabric import Fabric

_CONDITIONS = {
    SwitchCondition.AWAY: wire.AWAY,
    SwitchCondition.BEHIND: wire.BEHIND,
    SwitchCondition.CAUGHT_UP: wire.CAUGHT_UP,
    SwitchCondition.REFUSES: wire.REFUSES,
    SwitchCondition.LOST: wire.LOST,
}


def job_states(
    jobs: Sequence[RegisteredJob],
    lease_s: Callable[[RegisteredJob], float],
    profile: Callable[[RegisteredJob], wire.ProfileState],
    decision: Decision | None,
) -> Iterator[wire.JobState]:
    """The states of registered jobs in order of rank; those without a rank come last.

    ``lease_s`` has the seconds left of a job's lease, and ``profile`` the state of its profile.
    """
    levels = levels_in_force(decision.plan, decision.snapshot) if decision else {}
    plans = {plan.name: plan for plan in decision.plan.jobs} if decision else {}

    def place(job: RegisteredJob) -> tuple[bool, int, str]:
        plan = plans.get(job.request.name)
        return plan is None, 0 if plan is None else plan.rank, job.request.name

    for job in sorted(jobs, key=place):
        plan = plans.get(job.request.name)
        in_force = None if plan is None else replace(plan, level=levels[plan.name])
        yield job_state(job, lease_s(job), profile(job), in_force)


def job_state(job: RegisteredJob, lease_s: float, profile: wire.ProfileState, plan: JobPlan | None) -> wire.JobState:
    """The state of one job; ``plan`` is None where it is not planned yet."""
    state = wire.JobState(
        name=job.request.name,
        hosts=job.request.hosts,
        gpus=job.request.gpus,
        flow_groups=len(job.flow_groups),
        flows=sum(len(group.flows) for group in job.flow_groups),
        lease_s=lease_s,
        profile=profile,
    )
    if plan is not None:
        state.MergeFrom(
            wire.JobState(
                rank=plan.rank,
                level=plan.level,
                intensity=plan.intensity,
                correction_factor=plan.correction_factor,
                priority=plan.priority,
            )
        )
    return state


def profile_state(job: RegisteredJob, profiling: ProfilingResults, now_s: float) -> wire.ProfileState:
    """The source of a job's profile, and its measurement where there is one."""
    name = job.request.name
    if job.request.profile is not None:
        return wire.ProfileState(source=wire.TOLD)
    measured = profiling.measured(name)
    if measured is None:
        return wire.ProfileState(source=wire.BEING_MEASURED if profiling.profiled == name else wire.NOT_KNOWN_YET)
    return wire.ProfileState(
        source=wire.MEASURED,
        age_s=now_s - measured.at_s,
        period_s=measured.rhythm.period_s,
        transfer_s=measured.transfer_s,
        iterations=measured.rhythm.iterations,
    )


def flow_states(decision: Decision, fabric: Fabric) -> Iterator[wire.FlowState]:
    """The flows of the Plan in force, in order of their jobs' names."""
    for job in decision.snapshot.jobs:
        for flow in job.registered_flows:
            yield flow_state(flow, decision, fabric)


def flow_state(flow: Flow, decision: Decision, fabric: Fabric) -> wire.FlowState:
    """The state of one flow of the Plan in force."""
    plan = decision.plan.flows[flow.key]
    return wire.FlowState(
        job=flow.key.job,
        flow_group=flow.key.group,
        flow=flow.key.flow,
        five_tuple=str(flow.five_tuple),
        size_bytes=flow.size_bytes,
        offset_s=flow.offset_s,
        path=path_message(plan.path or flow.hashed_path, fabric),
        steered=plan.path is not None,
        level=plan.level,
        order=plan.order,
        is_cut_off=flow.is_cut_off,
    )


def level_states(decision: Decision) -> Iterator[wire.LevelState]:
    """The levels that flows have, the most urgent first."""
    flows = {flow.key: flow for job in decision.snapshot.jobs for flow in job.flows}
    for level in sorted({plan.level for plan in decision.plan.flows.values()}, reverse=True):
        keys = [key for key, plan in decision.plan.flows.items() if plan.level == level]
        senders = {key.job for key in keys}
        yield wire.LevelState(
            level=level,
            jobs=[job.name for job in decision.plan.jobs if job.name in senders],
            flows=len(keys),
            size_bytes=sum(flows[key].size_bytes for key in keys),
        )


def rule_states(decision: Decision, fabric: Fabric) -> Iterator[wire.RuleState]:
    """The rules of the Plan in force by switch, in the order of the fabric; those for whole jobs come last."""
    for switch in fabric.switches:
        for rule in sorted(decision.rules.get(switch, ()), key=lambda rule: rule.five_tuple):
            yield rule_state(rule, fabric)
        for of_job in sorted(decision.job_rules.get(switch, ())):
            traffic = f"{of_job.source_address} > {of_job.destination_host}"
            yield wire.RuleState(switch=switch, five_tuple=traffic, level=of_job.level)


def _num_planned(switch: str, decision: Decision) -> int:
    return len(decision.rules.get(switch, ())) + len(decision.job_rules.get(switch, ()))


def rule_state(rule: FlowRule, fabric: Fabric) -> wire.RuleState:
    """The state of one rule of the Plan in force."""
    link = None if rule.next_link is None else fabric.links[rule.next_link]
    return wire.RuleState(
        switch=rule.switch,
        five_tuple=str(rule.five_tuple),
        port=None if link is None else link.source_port,
        next_node=None if link is None else link.destination,
        level=rule.level,
    )


def switch_states(statuses: Sequence[SwitchStatus], decision: Decision | None) -> Iterator[wire.SwitchState]:
    """The states of switches, with the number of rules that each has and is to have."""
    for status in statuses:
        yield wire.SwitchState(
            name=status.name,
            address=status.address,
            device_id=status.device_id,
            condition=_CONDITIONS[status.condition],
            problem=status.problem,
            num_rules=status.num_rules,
            num_planned_rules=_num_planned(status.name, decision) if decision else 0,
            changed_ago_s=status.changed_ago_s,
            drifted=status.drifted,
        )


def link_states(
    dead_cables: Iterable[DeadCable],
    drained: Set[int],
    overruled: Mapping[int, Set[str]],
    fabric: Fabric,
    now_s: float,
) -> Iterator[wire.LinkState]:
    """The cables that are not used: those that failed, then those of links that are only ``drained``.

    With those that failed are the hosts that claim, against a majority, to hear probes over them.
    """
    for cable in dead_cables:
        link = fabric.links[cable.link]
        yield wire.LinkState(
            source=link.source,
            destination=link.destination,
            parallel=fabric.parallel_index(cable.link),
            is_down=cable.state is LinkState.DOWN,
            state=cable.state,
            falls=cable.falls,
            fell_ago_s=now_s - cable.fell_s,
            held_for_s=cable.held_for_s,
            claimants=sorted({host for link in links_of((cable.link // 2,)) for host in overruled.get(link, ())}),
            ports=cable_words(fabric, cable.link),
        )
    for first in sorted(index for index in drained if index % 2 == 0):
        link = fabric.links[first]
        yield wire.LinkState(
            source=link.source,
            destination=link.destination,
            parallel=fabric.parallel_index(first),
            state="drained",
            ports=cable_words(fabric, first),
        )
