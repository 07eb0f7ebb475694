"""The controller that sends as much as the step has time for: the least error that delays nothing.

All sums should be there when the backward pass ends, or by the controller's slack later; gradients may prolong the step
by ``tolerated_loss`` of it besides. Everything is dense where that fits. Otherwise it is what loses the least and fits:
``filling``. Where the fastest ends late itself, as where encoding takes long, the tolerated loss counts from there: a
step may always be so much longer than the fastest. Not so where it encodes for others' sake alone, because a controller
leaves it less than the link would carry: it loses enough then.

The bucket that is ready last has little time, for nothing hides its transmission. What it leaves out, its remainder,
exists when the next step begins, and the link is free until the first gradients are there. So the remainder travels
then, and counts in the mean of that next step.

``decide`` is a pure function of numbers that all ranks have, so all ranks decide alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median_low

from hostlib.compression.agreement import Agreed
from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.control.cost import Bucket, Cost, MeasuredCosts, share_sent, transmission_cost
from hostlib.compression.control.explanation import Explanation, Outcome, RateSource
from hostlib.compression.control.filling import Filling, services_of
from hostlib.compression.control.network import PROBING_GAIN, Link, Network, sensed
from hostlib.compression.control.rungs import Rung, rungs
from hostlib.compression.control.timeline import Timing, forecast

MOST_GATHERING_RANKS = 4
"""Up to here the first steps' sparse payloads travel by all-gather, which moves less than a reduce-scatter there."""


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """What a user may choose.

    Attributes:
        tolerated_loss: Share of a step by which gradients may prolong it.
        lowest_ratio: No bucket is sent at less. Less would be faster where the last bucket is large and the link slow,
            and cost accuracy where no remainder follows.
        start_ratio: Of the first steps, when the network is not known.
        low_rank: Ranks at which buckets of DDP may be sent as low rank (PowerSGD) where dense does not fit. None by
            default: sparse gradients lose less at as many bytes (``rungs.LOW_RANK_WORTH``).

    Raises:
        ValueError: One is out of range.
    """

    tolerated_loss: float = 0.02
    lowest_ratio: float = 0.01
    start_ratio: float = 0.02
    low_rank: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.tolerated_loss <= 1:
            raise ValueError(f"tolerated_loss: expected 0 to 1, got {self.tolerated_loss}")
        if not 0 < self.lowest_ratio <= self.start_ratio <= 1:
            raise ValueError(
                f"expected 0 < lowest_ratio <= start_ratio <= 1, got {self.lowest_ratio} and {self.start_ratio}"
            )
        if any(rank < 1 for rank in self.low_rank):
            raise ValueError(f"low_rank: expected ranks of 1 or more, got {self.low_rank}")


@dataclass(frozen=True, slots=True)
class BudgetState:
    """What the controller remembers.

    Attributes:
        choices: The last decision, per bucket.
        remainder: Likewise.
        time_s: The sum of step times, the only clock.
        decisions: How many there were.
        ignored: Calls that had nothing to decide from.
        network: Rate and latency.
        timings: Of the last three steps; medians of them count, so one clock that jumps changes nothing.
    """

    choices: tuple[Choice, ...]
    time_s: float = 0
    decisions: int = 0
    ignored: int = 0
    network: Network = field(default_factory=Network)
    timings: tuple[Timing, ...] = ()
    remainder: Choice | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What ``decide`` returns.

    Attributes:
        state: The next one.
        choices: What each bucket of the next step is sent as.
        remainder: What the remainder is sent as, before them; None: it is not.
        explanation: Why.
    """

    state: BudgetState
    choices: tuple[Choice, ...]
    remainder: Choice | None
    explanation: Explanation


class Budget:
    """Decides for the buckets of one job. It holds constants alone; what changes is in ``BudgetState``.

    Other buckets, as DDP makes after the first step, need another ``Budget``; the network that the old state knows goes
    into the new one's: ``replace(new.start().state, network=old.network)``.

    Args:
        buckets: In the order in which a step issues them; all of one world size and precision.
        measured: What codecs take.
        settings: None: the defaults.
    """

    def __init__(
        self, buckets: Sequence[Bucket], measured: MeasuredCosts, settings: BudgetSettings | None = None
    ) -> None:
        self.buckets = tuple(buckets)
        self.measured = measured
        self.settings = settings or BudgetSettings()
        self.rungs = (
            rungs(self.buckets, measured, self.settings.lowest_ratio, self.settings.low_rank) if buckets else ()
        )
        self.elements = sum(bucket.elements for bucket in self.buckets)
        self.remainder_of = next(
            (position for position, bucket in enumerate(self.buckets) if bucket.has_remainder and bucket.elements), None
        )

    def start(self) -> Decision:
        """Return the state before the first step, and what that step's buckets are sent as."""
        ratio = self.settings.start_ratio
        choices = tuple(
            bucket.dense_choice
            if bucket.world_size == 1 or ratio == 1
            else Choice(
                ratio,
                Precision.FP16,
                Collective.ALL_GATHER if bucket.world_size <= MOST_GATHERING_RANKS else Collective.REDUCE_SCATTER,
            )
            for bucket in self.buckets
        )
        return self._unchanged(BudgetState(choices), Outcome.START)

    def decide(
        self, state: BudgetState, sent: Sequence[Choice], agreed: Agreed | None, remainder: Choice | None = None
    ) -> Decision:
        """Decide what the next step's buckets are sent as, and the remainder before them.

        Args:
            state: The last decision's.
            sent: What the buckets of the measured step were sent as. That is not always the last decision: proposals
                arrive while the next step is under way.
            agreed: What was measured of it; None, or numbers of other buckets, change nothing and are counted.
            remainder: What the remainder was sent as that travelled before them; None: none did.
        """
        if not self.buckets or len(sent) != len(self.buckets) or not self._is_of(agreed, remainder):
            return self._unchanged(replace(state, ignored=state.ignored + 1), Outcome.UNCHANGED)
        assert agreed is not None
        costs = [
            transmission_cost(choice, bucket, self.measured) for choice, bucket in zip(sent, self.buckets, strict=True)
        ]
        remainder_cost = None
        if remainder is not None and self.remainder_of is not None:
            remainder_cost = transmission_cost(remainder, self.buckets[self.remainder_of], self.measured)
        time_s = state.time_s + agreed.step_s
        state = replace(
            state,
            time_s=time_s,
            decisions=state.decisions + 1,
            network=sensed(state.network, time_s, agreed, costs, self.measured.hop_s, remainder_cost),
            timings=(*state.timings, _without_encoding(agreed, costs, remainder_cost))[-3:],
        )
        return self._decided(state, agreed)

    def _decided(self, state: BudgetState, agreed: Agreed) -> Decision:
        link, source = _link(state, agreed)
        if link is None and any(bucket.world_size > 1 and bucket.elements for bucket in self.buckets):
            return self._unchanged(state, Outcome.START)
        link = link or Link(1.0, 1.0, 0.0)  # nothing is sent
        timing = _median(state.timings)
        slack_s = min(agreed.slack_s or 0.0, timing.compute_s)  # a transmission hides behind one step at most
        filling = Filling(self.rungs, timing, link)
        tolerated_s = self.settings.tolerated_loss * timing.compute_s
        deadline_s = timing.backward_s + slack_s + tolerated_s
        dense = [0] * len(self.buckets)
        outcome, levels, remainder = Outcome.DENSE, dense, None
        if filling.forecast(dense).finish_s > deadline_s:
            fastest_s, fastest = filling.fastest()
            outcome = Outcome.COMPRESSED if fastest_s <= deadline_s else Outcome.NOTHING_FITS
            if source is not RateSource.CONTROLLER or not self._yields(state.network, timing, fastest, deadline_s):
                fastest_s += tolerated_s
            deadline_s = max(deadline_s, fastest_s)
            filling, levels, remainder = self._filled(filling, deadline_s)
        choices = tuple(filling.ladder[level].choice for level in levels)
        sent = [filling.ladder[level].costs[position].link_bytes for position, level in enumerate(levels)]
        explanation = Explanation(
            outcome,
            source,
            rate_bps=8 * link.rate,
            hop_s=link.hop_s,
            slack_s=slack_s,
            deadline_s=deadline_s,
            finish_s=filling.forecast(levels if remainder is None else [remainder, *levels]).finish_s,
            dense_bytes=self.rungs[0].link_bytes,
            fitting_bytes=link.rate * max(0.0, deadline_s - min(timing.ready_s)),
            sent_bytes=sum(sent),
            low_rank_buckets=sum(choice.rank > 0 for choice in choices),
        )
        rest = None
        if remainder is not None and self.remainder_of is not None:
            rung = filling.ladder[remainder]
            rest = rung.choice
            explanation = replace(explanation, remainder_bytes=rung.costs[self.remainder_of].link_bytes)
        explanation = replace(explanation, ratio=self._ratio(choices, rest))
        return Decision(replace(state, choices=choices, remainder=rest), choices, rest, explanation)

    def _yields(self, network: Network, timing: Timing, fastest: Rung, deadline_s: float) -> bool:
        """Whether encoding makes the fastest at a controller's rate late, and at the measured one nothing need be."""
        link = network.link
        if link is None:
            return False
        is_late = forecast(timing, services_of(fastest, link)).finish_s > deadline_s
        return is_late and Filling(self.rungs, timing, link).fastest()[0] <= deadline_s

    def _filled(self, filling: Filling, deadline_s: float) -> tuple[Filling, list[int], int | None]:
        """Return the levels of the buckets and of the remainder, None if there is none, and the filling they are of."""
        elements = [bucket.elements for bucket in self.buckets]
        levels = filling.filled(deadline_s, elements)
        assert levels is not None  # the deadline is not before the fastest
        position = self.remainder_of
        if position is None or filling.ladder[levels[position]].choice.is_dense:
            return filling, levels, None
        with_remainder = filling.with_remainder_of(position)
        filled = with_remainder.filled(deadline_s, [elements[position], *elements])
        if filled is None or filled[0] == len(filling.ladder) - 1:
            return filling, levels, None
        return with_remainder, filled[1:], filled[0]

    def _unchanged(self, state: BudgetState, outcome: Outcome) -> Decision:
        explanation = Explanation(outcome, ratio=self._ratio(state.choices, state.remainder))
        return Decision(state, state.choices, state.remainder, explanation)

    def _is_of(self, agreed: Agreed | None, remainder: Choice | None) -> bool:
        """Whether numbers are of these buckets, and of a remainder if one travelled."""
        if agreed is None or (remainder is not None and self.remainder_of is None):
            return False
        return len(agreed.ready_s) == len(self.buckets) + (remainder is not None)

    def _ratio(self, choices: Sequence[Choice], remainder: Choice | None) -> float:
        if not self.elements:
            return 1.0
        sent = 0.0
        for position, (choice, bucket) in enumerate(zip(choices, self.buckets, strict=True)):
            later = 0.0 if remainder is None or position != self.remainder_of else share_sent(remainder, bucket)
            sent += min(1.0, share_sent(choice, bucket) + later) * bucket.elements
        return sent / self.elements


def _link(state: BudgetState, agreed: Agreed) -> tuple[Link | None, RateSource]:
    """Return what the link is taken for. A controller's rate counts unless it is well above what was measured."""
    own = state.network.link
    if agreed.rate_bps is not None:
        directed = agreed.rate_bps / 8
        if own is None or directed <= PROBING_GAIN * own.rate:
            return Link(directed, directed, state.network.hop_s, state.network.delay_s), RateSource.CONTROLLER
    if own is None:
        return None, RateSource.NOTHING
    return own, RateSource.PROBING if state.network.probing else RateSource.MEASURED


def _without_encoding(agreed: Agreed, costs: Sequence[Cost], remainder: Cost | None) -> Timing:
    encoded_s, ready_s = 0.0, []
    for measured_s, cost in zip(agreed.ready_s[: len(costs)], costs, strict=True):
        ready_s.append(max(0.0, measured_s - encoded_s))
        encoded_s += cost.encode_s
    backward_s = max(0.0, agreed.backward_s - encoded_s)
    if remainder is not None:
        encoded_s += remainder.encode_s
    return Timing(tuple(ready_s), backward_s, max(backward_s, agreed.compute_s - encoded_s))


def _median(timings: Sequence[Timing]) -> Timing:
    return Timing(
        tuple(map(median_low, zip(*(timing.ready_s for timing in timings), strict=True))),
        median_low(timing.backward_s for timing in timings),
        median_low(timing.compute_s for timing in timings),
    )
