"""A job in virtual time: what its steps send, and when each begins and ends.

A step is a forward pass of a third of its computation, then a backward pass. Each bucket is encoded once it is ready,
which delays the rest of the backward pass; its collectives have the network in the order of the buckets; then it is
decoded. The next step begins when all are. A remainder is encoded when a step begins, which delays all of it, and has
the network before the buckets.

The controller sees what a rank does: its proposals travel as bytes, and a step's decide the step after the next.
"""

from collections.abc import Generator
from dataclasses import dataclass
from itertools import count

from experiments.compression.conditions import Conditions
from experiments.compression.methods import Method, PlanAt
from experiments.compression.real_models import RealModel
from experiments.compression.sending import CodecTable, Sending, StepPlan, bucket_of, dense_plan, sending_of, sendings
from experiments.compression.star import HOSTS, Pattern, Star, Transfer
from experiments.compression.stars import star_on
from experiments.scenarios.backend import Backend
from hostlib.compression.agreement import Proposal, agreed, read_proposals
from hostlib.compression.choice import Choice
from hostlib.compression.codecs.payload import Form
from hostlib.compression.control.budget import BudgetSettings
from hostlib.compression.control.cost import share_sent
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
        plan: What it sent of its own gradients.
        remainder: What it sent before them, of what the last bucket of the step before had left out; None: nothing.
        start_s: Its begin; so all times.
        end_s: When all gradients were summed, and the backward pass was over.
        busy_s: How long its collectives had the network.
        free_s: How long they could have had it, from the first gradients, or from the begin of a step with a remainder,
            until the end of the backward pass and what a step is allowed to lose.
    """

    plan: StepPlan
    remainder: Choice | None
    start_s: float
    end_s: float
    busy_s: float
    free_s: float


def run(
    job: Job,
    method: Method,
    conditions: Conditions,
    steps: int,
    until_s: float = float("inf"),
    backend: Backend = Backend.SIMULATOR,
) -> list[Step]:
    """Run a job's first steps, at most so many, and as many as begin before a time."""
    buckets = job.model.buckets
    star = star_on(backend, conditions, job.table.costs.hop_s)
    plans = controlled(job, method.name) if method.plan_at is None else planned(method.plan_at, steps, len(buckets))
    plan = next(plans)
    done: list[Step] = []
    now_s = 0.0
    while len(done) < steps and now_s < until_s:
        step, proposal = _on_star(begun(job, plan, now_s, method.form), star)
        plan = plans.send((step, proposal))
        done.append(step)
        now_s = step.end_s
    return done


def ratio_of(step: Step, model: RealModel) -> float:
    """Return the share of the gradients that a step sent, with what its remainder sent."""
    sent = 0.0
    for choice, bucket in zip(step.plan, map(bucket_of, model.buckets), strict=True):
        sent += share_sent(choice, bucket) * bucket.elements
    if step.remainder is not None:
        last = bucket_of(model.buckets[-1])
        sent += min(share_sent(step.remainder, last), 1 - share_sent(step.plan[-1], last)) * last.elements
    return sent / model.elements


Planned = tuple[StepPlan, Choice | None]
"""What a step sends: its buckets, and the remainder before them."""
Plans = Generator[Planned, tuple[Step, Proposal], None]
"""Yields the plan of each step, and is sent what became of it."""


def planned(plan_at: PlanAt, steps: int, buckets: int) -> Plans:
    """Yield what a plan says, whatever becomes of it."""
    for step in count():
        yield plan_at(step, steps, buckets), None


def controlled(job: Job, mode: str) -> Plans:
    """Yield what the product's controller decides from what 8 ranks have measured, which all measure the same.

    The first step is dense, for the controller learns from it what buckets there are. A proposal travels in the next
    step.
    """
    step, proposal = yield dense_plan(job.model.buckets), None
    *others, last = job.model.buckets
    buckets = [*map(bucket_of, others), bucket_of(last, has_remainder=True)]
    controller = controllers_of(mode, BudgetSettings(), PaperParameters())(buckets, job.table.costs)
    while True:
        sent, remainder, message = step.plan, step.remainder, proposal.to_bytes()
        step, proposal = yield controller.choices, controller.remainder
        proposals, _ = read_proposals([message] * HOSTS)
        controller.decide(sent, agreed(proposals), remainder)


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


def begun(job: Job, planned: Planned, start_s: float, form: Form | None = None) -> Transfers:
    """Begin a step at a time; return the step, and what a rank measures of it."""
    plan, remainder = planned
    sent = sendings(plan, job.model.buckets, job.table, form)
    before = None if remainder is None else sending_of(remainder, job.model.buckets[-1], job.table)
    encoding_s = busy_s = decoded_s = 0.0
    network_free_s = encoded_at_s = start_s
    ready_s, network_s, exchange_s = [], [], []
    if before is not None:
        encoded_at_s += before.encode_s
        network_free_s, before_exchange_s = yield from _carried(before, encoded_at_s)
        busy_s = network_free_s - encoded_at_s
        decoded_s = network_free_s + before.decode_s
    backward_at_s = encoded_at_s + FORWARD_SHARE * job.compute_s
    backward_s = (1 - FORWARD_SHARE) * job.compute_s
    measured = [] if before is None else [(busy_s, max(0.0, network_free_s - backward_at_s), before_exchange_s)]
    for bucket, sending in zip(job.model.buckets, sent, strict=True):
        ready_at_s = backward_at_s + bucket.ready_share * backward_s + encoding_s
        encoding_s += sending.encode_s
        encoded_at_s = ready_at_s + sending.encode_s
        begin_s = max(encoded_at_s, network_free_s)
        network_free_s, its_exchange_s = yield from _carried(sending, begin_s)
        busy_s += network_free_s - begin_s
        decoded_s = max(network_free_s, decoded_s) + sending.decode_s
        ready_s.append(ready_at_s - backward_at_s)
        network_s.append(network_free_s - encoded_at_s)
        exchange_s.append(its_exchange_s)
    end_s = max(decoded_s, backward_at_s + backward_s + encoding_s)
    free_s = backward_s + TOLERATED_LOSS * job.compute_s - (ready_s[0] if before is None else start_s - backward_at_s)
    last_ready_s = ready_s[-1]
    proposal = Proposal(
        tuple(network_s + [duration_s for duration_s, _, _ in measured]),
        tuple(ready_s + [at_s for _, at_s, _ in measured]),
        tuple(exchange_s + [took_s for _, _, took_s in measured]),
        compute_s=backward_at_s - start_s + last_ready_s,
        backward_s=last_ready_s,
        step_s=end_s - start_s,
        round_trip_s=2 * job.table.costs.hop_s,
    )
    return Step(plan, remainder, start_s, end_s, busy_s, free_s), proposal


def _carried(sending: Sending, begin_s: float) -> Generator[tuple[Transfer, float], float, tuple[float, float]]:
    """Have the network carry all transfers of a sending; return when it has, and how long its exchange took."""
    exchange_s = 0.0
    for transfer in sending.transfers:
        end_s = yield transfer, begin_s
        if transfer.pattern is Pattern.EXCHANGE:
            exchange_s += end_s - begin_s
        begin_s = end_s
    return begin_s, exchange_s
