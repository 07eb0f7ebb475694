"""A job in virtual time: what its steps send, and when each begins and ends.

A step is a forward pass of a third of its computation, then a backward pass. Each bucket is encoded once it is ready,
which delays the rest of the backward pass; its collectives have the network in the order of the buckets; then it is
decoded. The next step begins when all are.

The controller sees what a rank does: its proposals travel as bytes, and a step's decide the step after the next.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import count

from experiments.compression.conditions import Conditions
from experiments.compression.methods import Method, PlanAt
from experiments.compression.real_models import RealModel
from experiments.compression.sending import CodecTable, Sending, StepPlan, dense_plan, sendings
from experiments.compression.star import HOP_S, HOSTS, Star, Transfer
from hostlib.compression.agreement import Proposal, agreed, read_proposals
from hostlib.compression.control.budget import BudgetSettings
from hostlib.compression.control.cost import Bucket
from hostlib.compression.control.paper import PaperParameters
from hostlib.compression.controllers import controllers_of

FORWARD_SHARE = 1 / 3
"""Of a step's computation."""
TOLERATED_LOSS = BudgetSettings().tolerated_loss


@dataclass(frozen=True, slots=True)
class Job:
    """A training job on 8 hosts: its model, its computation per step without a network, and its device's codecs."""

    model: RealModel
    compute_s: float
    table: CodecTable


@dataclass(frozen=True, slots=True)
class Step:
    """One step in virtual time.

    Attributes:
        plan: What it sent.
        start_s: Its begin; so all times.
        end_s: When all gradients were summed, and the backward pass was over.
        busy_s: How long its collectives had the network.
        free_s: How long they could have had it, from the first gradients until the end of the backward pass and what a
            step is allowed to lose.
    """

    plan: StepPlan
    start_s: float
    end_s: float
    busy_s: float
    free_s: float


def run(job: Job, method: Method, conditions: Conditions, steps: int, until_s: float = float("inf")) -> list[Step]:
    """Run a job's first steps, at most so many, and as many as begin before a time."""
    buckets = job.model.buckets
    star = Star(conditions)
    plans = controlled(job, method.name) if method.plan_at is None else planned(method.plan_at, steps, len(buckets))
    plan = next(plans)
    done: list[Step] = []
    now_s = 0.0
    while len(done) < steps and now_s < until_s:
        transfers = begun(job, plan, sendings(plan, buckets, job.table, method.form), now_s)
        step, proposal = _on_star(transfers, star)
        plan = plans.send((step, proposal))
        done.append(step)
        now_s = step.end_s
    return done


Plans = Generator[StepPlan, tuple[Step, Proposal], None]
"""Yields the plan of each step, and is sent what became of it."""


def planned(plan_at: PlanAt, steps: int, buckets: int) -> Plans:
    """Yield what a plan says, whatever becomes of it."""
    for step in count():
        yield plan_at(step, steps, buckets)


def controlled(job: Job, mode: str) -> Plans:
    """Yield what the product's controller decides from what 8 ranks have measured, which all measure the same.

    The first step is dense, for the controller learns from it what buckets there are. A proposal travels in the next
    step.
    """
    step, proposal = yield dense_plan(job.model.buckets)
    buckets = [Bucket(bucket.elements, HOSTS) for bucket in job.model.buckets]
    controller = controllers_of(mode, BudgetSettings(), PaperParameters())(buckets, job.table.costs)
    while True:
        sent, message = step.plan, proposal.to_bytes()
        step, proposal = yield controller.choices
        proposals, _ = read_proposals([message] * HOSTS)
        assert isinstance(sent, tuple)  # a controller never chooses low rank
        controller.decide(sent, agreed(proposals))


Transfers = Generator[tuple[Transfer, float], float, tuple[Step, Proposal]]
"""The transfers of a step, each with its begin; it is sent when each has ended."""


def _on_star(transfers: Transfers, star: Star) -> tuple[Step, Proposal]:
    """Have a network to itself carry a step's transfers; return the step."""
    try:
        transfer, begin_s = next(transfers)
        while True:
            transfer, begin_s = transfers.send(star.finish_s(transfer, begin_s))
    except StopIteration as stop:
        ended: tuple[Step, Proposal] = stop.value
        return ended


def begun(job: Job, plan: StepPlan, sent: Sequence[Sending], start_s: float) -> Transfers:
    """Begin a step at a time; return the step, and what a rank measures of it."""
    backward_at_s = start_s + FORWARD_SHARE * job.compute_s
    backward_s = (1 - FORWARD_SHARE) * job.compute_s
    encoding_s = busy_s = 0.0
    network_free_s = decoded_s = 0.0
    ready_s, network_s = [], []
    for bucket, sending in zip(job.model.buckets, sent, strict=True):
        ready_at_s = backward_at_s + bucket.ready_share * backward_s + encoding_s
        encoding_s += sending.encode_s
        encoded_at_s = ready_at_s + sending.encode_s
        begin_s = network_free_s = max(encoded_at_s, network_free_s)
        for transfer in sending.transfers:
            network_free_s = yield transfer, network_free_s
        busy_s += network_free_s - begin_s
        decoded_s = max(network_free_s, decoded_s) + sending.decode_s
        ready_s.append(ready_at_s - backward_at_s)
        network_s.append(network_free_s - encoded_at_s)
    end_s = max(decoded_s, backward_at_s + backward_s + encoding_s)
    free_s = backward_s + TOLERATED_LOSS * job.compute_s - ready_s[0]
    last_ready_s = ready_s[-1]
    proposal = Proposal(
        tuple(network_s),
        tuple(ready_s),
        compute_s=backward_at_s - start_s + last_ready_s,
        backward_s=last_ready_s,
        step_s=end_s - start_s,
        round_trip_s=2 * HOP_S,
    )
    return Step(plan, start_s, end_s, busy_s, free_s), proposal
