"""A job and its link, simulated: what the controllers are tested on. It knows the truth, and they see measurements.

A step is a forward pass of a third of its computation and a backward pass of two thirds. Buckets become ready in the
backward pass; one link sends them one after the other, at a rate that is a function of time.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from hostlib.compression.agreement import Proposal, agreed
from hostlib.compression.choice import Choice
from hostlib.compression.control.budget import Budget, BudgetSettings, Decision
from hostlib.compression.control.cost import Bucket, Cost, MeasuredCosts, transmission_cost
from hostlib.compression.control.rungs import rungs
from hostlib.compression.shapes import Shape

RESNET18_ELEMENTS = (2_400_000, 6_550_000, 2_600_000)
"""46.2 MB of fp32 as DDP's 25 MB rule cuts them: the last layers first."""
RESNET18_READY = (0.07, 0.33, 1.0)
"""Share of the backward pass after which each bucket is ready, by FLOPs, of which the first layers have many."""

TOLERATED_LOSS = BudgetSettings().tolerated_loss
FREELY = BudgetSettings(lowest_ratio=0.001, start_ratio=0.01)
"""Nearly all that fits may be chosen, so the budget is what decides."""


@dataclass
class Plant:
    """One rank's view of a job whose ranks are alike.

    Attributes:
        rate_bps: Of the link; a function is one of the time in seconds.
        noise: Standard deviation of what multiplies each transmission's time, log-normal.
        round_trip_error: What the measured round trip is of the true one.
        delay_s: For how long each transmission waits for a core besides.
        exchange_gain: How much faster exchanges are than rings, as where flows of others share the link.
        has_remainder: Whether what the last bucket leaves out can be sent.
        shapes: Of each bucket's one parameter; they let it be sent as low rank.
    """

    rate_bps: float | Callable[[float], float]
    compute_s: float = 0.25
    elements: Sequence[int] = RESNET18_ELEMENTS
    ready: Sequence[float] = RESNET18_READY
    world_size: int = 8
    hop_s: float = 50e-6
    costs: MeasuredCosts = field(default_factory=MeasuredCosts)
    noise: float = 0
    round_trip_error: float = 1
    slack_s: float = 0
    delay_s: float = 0
    exchange_gain: float = 1
    has_remainder: bool = False
    shapes: Sequence[Shape] = ()
    seed: int = 1
    time_s: float = 0
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    @property
    def buckets(self) -> list[Bucket]:
        count = len(self.elements)
        return [
            Bucket(
                elements,
                self.world_size,
                has_remainder=self.has_remainder and number == count,
                shapes=tuple(self.shapes[number - 1 : number]),
            )
            for number, elements in enumerate(self.elements, start=1)
        ]

    def sent_until(self, start_s: float, link_bytes: float) -> float:
        """When these bytes are through, if they start at a time; the rate is constant for slices of 10 ms."""
        if not callable(self.rate_bps):
            return start_s + link_bytes * 8 / self.rate_bps
        at_s = start_s
        while link_bytes > 0:
            rate = self.rate_bps(at_s) / 8
            slice_s = min(link_bytes / rate, 0.01)
            link_bytes -= slice_s * rate
            at_s += slice_s
            if link_bytes < 1e-6:
                break
        return at_s

    def carried(self, start_s: float, price: Cost) -> tuple[float, float]:
        """How long a transmission has the link, and its exchange, which is the first half, if it starts at a time."""
        exchanged_s = self.sent_until(start_s, price.exchange_bytes / self.exchange_gain) - start_s
        all_s = self.sent_until(start_s + exchanged_s, price.ring_bytes) - start_s
        latency_s = price.hops * self.hop_s + self.delay_s
        return all_s + latency_s, exchanged_s + latency_s / 2 if price.has_exchange else 0.0

    def step(self, choices: Sequence[Choice], remainder: Choice | None = None) -> tuple[Proposal, "Ran"]:
        """Run one step, and return what a rank measures of it and what really happened."""
        forward_s, backward_s = self.compute_s / 3, self.compute_s * 2 / 3
        encoded_s = decoded_s = busy_s = sent = 0.0
        first_s, free_s = math.inf, -forward_s
        ready_s, network_s, exchange_s = [], [], []
        before: list[tuple[float, float, float]] = []
        if remainder is not None:
            price = transmission_cost(remainder, self.buckets[-1], self.costs)
            forward_s += price.encode_s
            first_s = free_s
            busy_s, exchanged_s = self.carried(self.time_s + price.encode_s, price)
            free_s += busy_s
            decoded_s, sent = free_s + price.decode_s, price.link_bytes
            before.append((busy_s, max(0.0, free_s), exchanged_s))
        origin_s = self.time_s + forward_s
        for bucket, choice, share in zip(self.buckets, choices, self.ready, strict=True):
            price = transmission_cost(choice, bucket, self.costs)
            ready_s.append(share * backward_s + encoded_s)
            encoded_s += price.encode_s
            issued_s = ready_s[-1] + price.encode_s
            first_s = min(first_s, issued_s)
            begin_s = max(issued_s, free_s)
            took_s, exchanged_s = self.carried(origin_s + begin_s, price)
            slower = self.random.lognormvariate(0, self.noise) if self.noise else 1.0
            free_s = begin_s + took_s * slower
            busy_s += took_s * slower
            exchange_s.append(exchanged_s * slower)
            sent += price.link_bytes
            network_s.append(max(0.0, free_s - issued_s))
            decoded_s = max(decoded_s, free_s) + price.decode_s
        backward_s += encoded_s
        step_s = forward_s + max(backward_s, decoded_s - self.slack_s)
        self.time_s += step_s
        proposal = Proposal(
            network_s=(*network_s, *(took_s for took_s, _, _ in before)),
            ready_s=(*ready_s, *(end_s for _, end_s, _ in before)),
            exchange_s=(*exchange_s, *(exchanged_s for _, _, exchanged_s in before)),
            compute_s=forward_s + backward_s,
            backward_s=backward_s,
            step_s=step_s,
            round_trip_s=2 * self.hop_s * self.round_trip_error,
        )
        return proposal, Ran(step_s, busy_s, first_s, sent)


@dataclass(frozen=True)
class Ran:
    """What happened: the step, how long the link was busy, when in the backward pass the first bucket was issued."""

    step_s: float
    busy_s: float
    first_s: float
    sent_bytes: float


@dataclass
class Run:
    steps: list[Ran] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def share(self, plant: Plant, since: int = 0) -> float:
        """Throughput over that of the job without communication."""
        steps = self.steps[since:]
        return plant.compute_s * len(steps) / sum(ran.step_s for ran in steps)

    def used(self, plant: Plant, since: int = 0) -> float:
        """Share of the time from the first bucket's issue to the deadline in which the link was busy."""
        deadline_s = plant.compute_s * (2 / 3 + TOLERATED_LOSS) + plant.slack_s
        free_s = sum(deadline_s - ran.first_s for ran in self.steps[since:])
        return sum(min(ran.busy_s, deadline_s - ran.first_s) for ran in self.steps[since:]) / free_s


def fastest(plant: Plant) -> float:
    """The shortest step of any fixed choice that all buckets share, in hindsight, at the rate of this moment."""
    found = rungs(plant.buckets, plant.costs, 0.001)
    return min(replace(plant, noise=0).step([rung.choice] * len(rung.costs))[1].step_s for rung in found)


def run(
    plant: Plant,
    steps: int,
    *,
    costs: MeasuredCosts | None = None,
    before: Callable[[int, Plant], None] | None = None,
    heard: Callable[[int, Proposal], Proposal | None] | None = None,
    settings: BudgetSettings = FREELY,
) -> Run:
    """Run a job under ``Budget``. A step's proposals arrive in the next step's first bucket and decide the one after.

    Args:
        plant: The job.
        steps: How many.
        costs: What the controller takes the codecs for; None: the truth.
        before: Called before each step; it may change the plant.
        heard: What becomes of each step's proposal.
        settings: The controller's.
    """
    control = Budget(plant.buckets, costs or plant.costs, settings)
    decision = control.start()
    ran = Run()
    arriving: tuple[Proposal | None, tuple[Choice, ...], Choice | None] | None = None
    for step in range(steps):
        choices, remainder = decision.choices, decision.remainder
        if before:
            before(step, plant)
        proposal, happened = plant.step(choices, remainder)
        ran.steps.append(happened)
        ran.decisions.append(decision)
        if arriving is not None:
            heard_of, *sent = arriving
            decision = control.decide(decision.state, sent[0], agreed([heard_of] * plant.world_size), sent[1])
        arriving = (heard(step, proposal) if heard else proposal, choices, remainder)
    return ran
