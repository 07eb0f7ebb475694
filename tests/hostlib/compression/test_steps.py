"""The agreement as one rank sees it: which choices count for which step, and what is proposed."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from hostlib.compression.agreement import Agreed, Proposal
from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.collectives import Ranks
from hostlib.compression.control.cost import Bucket
from hostlib.compression.direction import Direction
from hostlib.compression.residuals import Section
from hostlib.compression.sensing import GroupSockets
from hostlib.compression.steps import Sent, Steps
from hostlib.compression.transmissions import Gradient

RANKS = Ranks(None, 1, 2, "gloo")
FIRST = ("a", "b")
REBUILT = ("b", "a")


class Halving:
    """A controller that halves the ratio at every decision, and keeps what it has heard."""

    reason = "It halves."
    remainder = Choice(0.75, Precision.FP16, Collective.ALL_GATHER)

    def __init__(self, buckets: Sequence[Bucket]) -> None:
        self.ratio = 0.5
        self.heard: list[tuple[list[float], Agreed | None]] = []
        self.remainders: list[Choice | None] = []
        self._number = len(buckets)

    @property
    def choices(self) -> tuple[Choice, ...]:
        return (Choice(self.ratio, Precision.FP16, Collective.ALL_GATHER),) * self._number

    def decide(self, sent: Sequence[Choice], agreed: Agreed | None, remainder: Choice | None = None) -> None:
        self.ratio /= 2
        self.remainders.append(remainder)
        self.heard.append(([choice.ratio for choice in sent], agreed))


class Job:
    """Two ranks of which the other one sends nothing but ``theirs``."""

    def __init__(self) -> None:
        self.controllers: list[Halving] = []
        self.steps = Steps(self._made, GroupSockets(()))
        self.theirs: bytes | None = None

    def _made(self, buckets: Sequence[Bucket]) -> Halving:
        self.controllers.append(Halving(buckets))
        return self.controllers[-1]

    def step(self, names: Sequence[str]) -> list[Sent]:
        """Make a step in which bucket k is ready k + 1 seconds after the backward pass began and takes half of one."""
        beside = self.steps.begin()
        begin_s = self.steps.clock.begin()
        sent = []
        for number, name in enumerate(names):
            gradient = Gradient(torch.zeros(4), (Section(name, 4),), (), self.steps.seed(RANKS))
            each = self.steps.next_bucket(gradient, Bucket(4, 2))
            each.carried.ready_s = each.carried.encoded_s = begin_s + number + 1
            each.carried.completed_s = begin_s + number + 1.5
            each.carried.sent_bytes = 3
            sent.append(each)
        if beside is not None:
            self.beside = beside.message
            beside.heard([self.theirs or beside.message, beside.message])
        return sent

    def ratios(self, names: Sequence[str]) -> list[float | None]:
        return [each.choice.ratio if each.choice else None for each in self.step(names)]


def test_a_step_decides_the_one_after_the_next() -> None:
    job = Job()
    assert job.ratios(FIRST) == [None, None]  # nothing is known
    assert job.ratios(FIRST) == [0.5, 0.5]  # the controller's first; meanwhile it hears of the first step
    assert job.ratios(FIRST) == [0.25, 0.25]
    assert [sent for sent, _ in job.controllers[0].heard] == [[1, 1], [0.5, 0.5]]


def test_buckets_that_are_rebuilt_are_sent_as_they_are_until_they_are_known() -> None:
    job = Job()
    job.ratios(FIRST)
    job.ratios(FIRST)
    assert job.ratios(REBUILT) == [None, None]
    assert job.ratios(REBUILT) == [0.5, 0.5]
    assert len(job.controllers) == 2
    assert job.ratios(("b",)) == [0.25]
    assert job.ratios(("b", "a")) == [0.5, None]


def test_a_proposal_has_the_times_of_the_step() -> None:
    job = Job()
    job.steps.direction = Direction(rate_bps=1e9, slack_s=0.25)
    job.step(FIRST)
    job.step(FIRST)
    proposal = Proposal.from_bytes(job.beside)
    assert proposal.network_s == pytest.approx((0.5, 0.5))
    assert proposal.ready_s == pytest.approx((1, 2))
    assert proposal.backward_s == pytest.approx(2)
    assert proposal.step_s == pytest.approx(proposal.compute_s + 0.5)
    assert (proposal.rate_bps, proposal.slack_s) == (1e9, 0.25)
    assert proposal.round_trip_s is None


def test_a_remainder_belongs_to_the_step_whose_buckets_it_travels_before() -> None:
    job = Job()
    assert job.steps.next_remainder(RANKS) is None  # there is no bucket yet
    job.step(FIRST)
    assert job.steps.next_remainder(RANKS) is None  # no controller
    job.step(FIRST)
    remainder = job.steps.next_remainder(RANKS)
    assert remainder is not None
    assert remainder.choice == Halving.remainder
    assert not remainder.gradient.buffer.any()
    assert remainder.gradient.sections == (Section("b", 4),)
    remainder.carried.encoded_s, remainder.carried.completed_s = 5.0, 7.0
    remainder.carried.exchange_s, remainder.carried.sent_bytes = 0.5, 5
    assert job.steps.remainder is None  # not yet
    job.step(FIRST)
    assert job.steps.remainder is remainder
    assert job.steps.totals().sent_bytes == 3 * 2 * 3 + 5
    job.step(FIRST)
    proposal = Proposal.from_bytes(job.beside)
    assert proposal.network_s == pytest.approx((0.5, 0.5, 2.0))
    assert proposal.exchange_s == (0, 0, 0.5)
    assert proposal.ready_s == pytest.approx((1, 2, 0))
    assert job.steps.remainder is None
    job.step(FIRST)
    assert job.controllers[0].remainders == [None, None, Halving.remainder, None]


def test_malformed_proposals_are_counted_and_change_no_others() -> None:
    job = Job()
    job.step(FIRST)
    job.step(FIRST)
    good = len(job.beside)
    job.theirs = bytes([7]) * good
    job.step(FIRST)
    assert job.steps.malformed == 1
    _, agreed = job.controllers[0].heard[-1]
    assert agreed is not None
    assert agreed.ranks == 1


def test_what_is_sent_is_added_up() -> None:
    job = Job()
    for _ in range(3):
        job.step(FIRST)
    job.step(FIRST)[0].gradient.passed_on = "NaN"
    totals = job.steps.totals()
    assert totals.sent_bytes == 4 * 2 * 3
    assert totals.dense_bytes == 4 * 2 * 16  # of 4 fp32 elements, 2 (W-1)/W with two ranks
    assert totals.passed_on == {"NaN": 1}
    assert job.steps.count == 4


def test_no_two_buckets_ranks_and_steps_have_the_same_seed() -> None:
    job = Job()
    seeds = []
    for _ in range(5):
        seeds += [sent.gradient.seed for sent in job.step(FIRST)]
        remainder = job.steps.next_remainder(RANKS)
        seeds += [] if remainder is None else [remainder.gradient.seed]
    other = [seed + 1 for seed in seeds]  # the other rank's number is the lower one
    assert len({*seeds, *other}) == 2 * (5 * 2 + 4)


@pytest.mark.parametrize(
    "direction", [{"rate_bps": 0.0}, {"rate_bps": -1.0}, {"slack_s": float("nan")}, {"slack_s": -0.1}]
)
def test_a_direction_that_makes_no_sense_is_refused(direction: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(direction))):
        Direction(**direction)
