"""The controller that sends as much as the step has time for: the least error that delays nothing.

All sums should be there when the backward pass ends, or by the controller's slack later; gradients may prolong the step
by ``tolerated_loss`` of it besides. What is sent is the first that fits of: everything dense; the least error at which
all buckets can be alike; and from there each bucket as far up as it still fits.

``decide`` is a pure function of numbers that all ranks have, so all ranks decide alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median_low

from hostlib.compression.agreement import Agreed
from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.control.cost import Bucket, Cost, MeasuredCosts, transmission_cost
from hostlib.compression.control.explanation import Explanation, Outcome, RateSource
from hostlib.compression.control.network import Network, sensed
from hostlib.compression.control.rungs import Rung, rungs
from hostlib.compression.control.timeline import Forecast, Service, Timing, forecast

PROBING_GAIN = 1.25
"""As BBR's (Cardwell et al., ACM Queue 14(5), 2016); also how far above its own estimate a controller's rate counts."""

PROBING_INTERVAL = 8

MOSTLY_LATENCY = 0.4
"""From this share of hops on, transmissions are too small to tell the rate, and probing finds whether more is there."""

FEWER_LEVELS = (1, 2, 4, 8)
"""How many levels lower the buckets are tried that are short of time."""

MOST_GATHERING_RANKS = 4
"""Up to here the first steps' sparse payloads travel by all-gather, which moves less than a reduce-scatter there."""


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """What a user may choose.

    Attributes:
        tolerated_loss: Share of a step by which gradients may prolong it.
        lowest_ratio: No bucket is sent at less.
        start_ratio: Of the first steps, when the network is not known; NetSenseML starts there.

    Raises:
        ValueError: One is out of range.
    """

    tolerated_loss: float = 0.02
    lowest_ratio: float = 0.001
    start_ratio: float = 0.01

    def __post_init__(self) -> None:
        if not 0 <= self.tolerated_loss <= 1:
            raise ValueError(f"tolerated_loss: expected 0 to 1, got {self.tolerated_loss}")
        if not 0 < self.lowest_ratio <= self.start_ratio <= 1:
            raise ValueError(
                f"expected 0 < lowest_ratio <= start_ratio <= 1, got {self.lowest_ratio} and {self.start_ratio}"
            )


@dataclass(frozen=True, slots=True)
class BudgetState:
    """What the controller remembers.

    Attributes:
        choices: The last decision, per bucket.
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


@dataclass(frozen=True, slots=True)
class Decision:
    """What ``decide`` returns: the next state, what each bucket is sent as, and why."""

    state: BudgetState
    choices: tuple[Choice, ...]
    explanation: Explanation


class Budget:
    """Decides for the buckets of one job. It holds constants alone; what changes is in ``BudgetState``."""

    def __init__(
        self, buckets: Sequence[Bucket], measured: MeasuredCosts, settings: BudgetSettings | None = None
    ) -> None:
        self.buckets = tuple(buckets)
        self.measured = measured
        self.settings = settings or BudgetSettings()
        self.rungs = rungs(self.buckets, measured, self.settings.lowest_ratio) if buckets else ()
        self.elements = sum(bucket.elements for bucket in self.buckets)

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
        return Decision(BudgetState(choices), choices, Explanation(Outcome.START, ratio=self._ratio(choices)))

    def decide(self, state: BudgetState, sent: Sequence[Choice], agreed: Agreed | None) -> Decision:
        """Decide what the next step's buckets are sent as.

        Args:
            state: The last decision's.
            sent: What the buckets of the measured step were sent as. That is not always the last decision: proposals
                arrive while the next step is under way.
            agreed: What was measured of it; None, or numbers of other buckets, change nothing and are counted.
        """
        if agreed is None or not len(agreed.ready_s) == len(sent) == len(self.buckets) or not self.buckets:
            state = replace(state, ignored=state.ignored + 1)
            return Decision(state, state.choices, Explanation(Outcome.UNCHANGED, ratio=self._ratio(state.choices)))
        costs = [
            transmission_cost(choice, bucket, self.measured) for choice, bucket in zip(sent, self.buckets, strict=True)
        ]
        time_s = state.time_s + agreed.step_s
        state = replace(
            state,
            time_s=time_s,
            decisions=state.decisions + 1,
            network=sensed(state.network, time_s, agreed, costs, self.measured.hop_s),
            timings=(*state.timings, _without_encoding(agreed, costs))[-3:],
        )
        return self._decided(state, agreed)

    def _decided(self, state: BudgetState, agreed: Agreed) -> Decision:
        rate, source = _rate(state, agreed)
        if rate is None and any(bucket.world_size > 1 and bucket.elements for bucket in self.buckets):
            return Decision(state, state.choices, Explanation(Outcome.START, ratio=self._ratio(state.choices)))
        rate = rate or 1.0  # nothing is sent
        timing = _median(state.timings)
        slack_s = min(agreed.slack_s or 0.0, timing.compute_s)  # a transmission hides behind one step at most
        plan = _Plan(self.rungs, timing, rate, state.network.hop_s)
        tolerated_s = self.settings.tolerated_loss * timing.compute_s
        deadline_s = timing.backward_s + slack_s + tolerated_s
        dense = [0] * len(self.buckets)
        outcome, levels = Outcome.DENSE, dense
        if plan.forecast(dense).finish_s > deadline_s:
            outcome = Outcome.COMPRESSED
            fastest_s = plan.fastest_s()
            if fastest_s > deadline_s:
                outcome = Outcome.NOTHING_FITS
            deadline_s = max(
                deadline_s, fastest_s + tolerated_s / 2
            )  # speed is not all, even where there is little time
            levels = plan.filled(deadline_s, [bucket.elements for bucket in self.buckets])
        choices = tuple(plan.ladder[level].choice for level in levels)
        first_s = min(timing.ready_s)
        explanation = Explanation(
            outcome,
            source,
            8 * rate,
            state.network.hop_s,
            slack_s,
            deadline_s,
            plan.forecast(levels).finish_s,
            self.rungs[0].link_bytes,
            rate * max(0.0, deadline_s - first_s),
            sum(plan.ladder[level].costs[position].link_bytes for position, level in enumerate(levels)),
            self._ratio(choices),
        )
        return Decision(replace(state, choices=choices), choices, explanation)

    def _ratio(self, choices: Sequence[Choice]) -> float:
        if not self.elements:
            return 1.0
        return sum(c.ratio * bucket.elements for c, bucket in zip(choices, self.buckets, strict=True)) / self.elements


class _Plan:
    """One step's choices: per bucket a level of the ladder of choices that are worth it at a rate."""

    def __init__(self, all_rungs: Sequence[Rung], timing: Timing, rate: float, hop_s: float) -> None:
        self.timing = timing
        self.ladder: list[Rung] = []
        self.services: list[tuple[Service, ...]] = []
        least_s = float("inf")
        for rung in all_rungs:
            total_s = rung.hops * hop_s + rung.link_bytes / rate + rung.codec_s
            if total_s < least_s:  # more error is worth it for less time alone
                least_s = total_s
                self.ladder.append(rung)
                self.services.append(
                    tuple(
                        Service(cost.encode_s, cost.hops * hop_s + cost.link_bytes / rate, cost.decode_s)
                        for cost in rung.costs
                    )
                )

    def forecast(self, levels: Sequence[int]) -> Forecast:
        """Return what becomes of the step at these levels."""
        return forecast(self.timing, [self.services[level][position] for position, level in enumerate(levels)])

    def fastest_s(self) -> float:
        """Return when the step's sums are there at the earliest, if all buckets are sent alike."""
        count = len(self.timing.ready_s)
        return min(self.forecast([level] * count).finish_s for level in range(len(self.ladder)))

    def filled(self, deadline_s: float, elements: Sequence[int]) -> list[int]:
        """Return the levels that fill the time until a deadline which the buckets can meet if they are alike.

        The buckets that are ready last are often the ones that are short of time. They get all of it at first; then it
        is tried what the others gain if these get less, for encoding takes time of theirs, and the least error counts.
        """
        count = len(elements)
        level = next(
            level for level in range(len(self.ladder)) if self.forecast([level] * count).finish_s <= deadline_s
        )
        filled, short = self._raised(deadline_s, level, [0] * count, elements)
        tried = [filled]
        for fewer in FEWER_LEVELS if len(short) < count else ():
            highest = [0] * count
            for position in short:
                highest[position] = min(len(self.ladder) - 1, filled[position] + fewer)
            tried.append(self._raised(deadline_s, level, highest, elements)[0])
        return min(tried, key=lambda levels: self._error(levels, elements))

    def _error(self, levels: Sequence[int], elements: Sequence[int]) -> float:
        return sum(self.ladder[level].error * count for level, count in zip(levels, elements, strict=True))

    def _raised(
        self, deadline_s: float, level: int, highest: Sequence[int], elements: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Return the levels to which the buckets rise together, and which of them stayed first.

        All rise from a level until one more would be late. Then the buckets that make it late stay, but for one more
        level where it fits, the largest first; the others rise on.

        Args:
            deadline_s: When all sums must be there.
            level: Where the buckets start; there they meet the deadline.
            highest: The level, by bucket, above which it does not rise.
            elements: By bucket.
        """
        rising = list(range(len(elements)))
        levels = _at(rising, rising, level, highest)
        short: list[int] = []
        while rising and level:
            level = self._common(levels, rising, level, highest, deadline_s)
            levels = _at(levels, rising, level, highest)
            if level:
                late = self.forecast(_at(levels, rising, level - 1, highest))
                chain = [position for position in rising if position >= late.chain_start] or rising
                rising = [position for position in rising if position not in chain]
                short = short or chain
                for position in sorted(chain, key=lambda position: -elements[position]):
                    risen = _at(levels, [position], level - 1, highest)
                    if self.forecast(risen).finish_s <= deadline_s:
                        levels = risen
        return levels, short

    def _common(
        self, levels: Sequence[int], rising: Sequence[int], level: int, highest: Sequence[int], deadline_s: float
    ) -> int:
        """Return the least level, by bisection, at which all that rise still meet the deadline."""
        late, met = -1, level
        while met - late > 1:
            middle = (late + met) // 2
            if self.forecast(_at(levels, rising, middle, highest)).finish_s <= deadline_s:
                met = middle
            else:
                late = middle
        return met


def _at(levels: Sequence[int], positions: Sequence[int], level: int, highest: Sequence[int]) -> list[int]:
    """Return the levels with those of some buckets set, as high as each may be."""
    changed = list(levels)
    for position in positions:
        changed[position] = max(level, highest[position])
    return changed


def _rate(state: BudgetState, agreed: Agreed) -> tuple[float | None, RateSource]:
    """Return the rate in bytes per second. A controller's counts as far as the network does not contradict it."""
    own = state.network.rate.value
    if agreed.rate_bps is not None:
        directed = agreed.rate_bps / 8
        if own is None or directed <= PROBING_GAIN * own:
            return directed, RateSource.CONTROLLER
    if own is None:
        return None, RateSource.NOTHING
    if state.network.latency_share >= MOSTLY_LATENCY and state.decisions % PROBING_INTERVAL == 0:
        return PROBING_GAIN * own, RateSource.PROBING
    return own, RateSource.MEASURED


def _without_encoding(agreed: Agreed, costs: Sequence[Cost]) -> Timing:
    encoded_s, ready_s = 0.0, []
    for measured_s, cost in zip(agreed.ready_s, costs, strict=True):
        ready_s.append(max(0.0, measured_s - encoded_s))
        encoded_s += cost.encode_s
    backward_s = max(0.0, agreed.backward_s - encoded_s)
    return Timing(tuple(ready_s), backward_s, max(backward_s, agreed.compute_s - encoded_s))


def _median(timings: Sequence[Timing]) -> Timing:
    return Timing(
        tuple(map(median_low, zip(*(timing.ready_s for timing in timings), strict=True))),
        median_low(timing.backward_s for timing in timings),
        median_low(timing.compute_s for timing in timings),
    )
