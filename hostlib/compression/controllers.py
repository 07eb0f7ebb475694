"""The modes: for each, what turns what all ranks have measured into the next choices of a job's buckets."""

from collections.abc import Callable, Sequence
from typing import Protocol

from hostlib.compression.agreement import Agreed
from hostlib.compression.choice import Choice
from hostlib.compression.control import paper, windowed
from hostlib.compression.control.budget import Budget, BudgetSettings
from hostlib.compression.control.cost import Bucket, MeasuredCosts, transmission_cost
from hostlib.compression.control.network import link_times_s
from hostlib.compression.control.paper import PaperParameters

MODES = ("budget", "windowed", "paper")


class Controller(Protocol):
    """Decides how the buckets of one layout are sent, from numbers that all ranks share and nothing else."""

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What each bucket is sent as next."""

    @property
    def remainder(self) -> Choice | None:
        """What the remainder is sent as before them; None: it is not."""

    @property
    def reason(self) -> str:
        """Why, in words."""

    def decide(self, sent: Sequence[Choice], agreed: Agreed | None, remainder: Choice | None = None) -> None:
        """Decide anew.

        Args:
            sent: What the buckets were sent as.
            agreed: What was measured of that; None: nothing that all ranks share.
            remainder: What the remainder was sent as that travelled before them; None: none did.
        """


Controllers = Callable[[Sequence[Bucket], MeasuredCosts], Controller]
"""Makes the controller of a job that has these buckets."""


class BudgetController:
    """Ours: the least error that delays nothing. See ``control.budget``."""

    def __init__(self, buckets: Sequence[Bucket], measured: MeasuredCosts, settings: BudgetSettings) -> None:
        self._budget = Budget(buckets, measured, settings)
        self._decision = self._budget.start()

    @property
    def choices(self) -> tuple[Choice, ...]:
        """See ``Controller``."""
        return self._decision.choices

    @property
    def reason(self) -> str:
        """See ``Controller``."""
        return str(self._decision.explanation)

    @property
    def remainder(self) -> Choice | None:
        """See ``Controller``."""
        return self._decision.remainder

    def decide(self, sent: Sequence[Choice], agreed: Agreed | None, remainder: Choice | None = None) -> None:
        """See ``Controller``."""
        self._decision = self._budget.decide(self._decision.state, sent, agreed, remainder)


class _OneRatio:
    """A controller with one choice for all buckets, which looks at the step as one transmission."""

    def __init__(self, buckets: Sequence[Bucket], measured: MeasuredCosts, parameters: PaperParameters) -> None:
        self._buckets = buckets
        self._measured = measured
        self._parameters = parameters
        self._choice = Choice(1, buckets[0].precision, buckets[0].dense_choice.collective)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """See ``Controller``."""
        return tuple(self._choice for _ in self._buckets)

    @property
    def remainder(self) -> None:
        """None: these modes know no remainder."""
        return None

    def _sensed(self, sent: Sequence[Choice], agreed: Agreed) -> tuple[float, float]:
        """Return the bytes of a step, and for how long the network was busy with them."""
        costs = [
            transmission_cost(choice, bucket, self._measured)
            for choice, bucket in zip(sent, self._buckets, strict=True)
        ]
        return sum(each.out_bytes for each in costs), sum(link_times_s(agreed, costs))


class PaperController(_OneRatio):
    """NetSenseML as printed, which collapses. See ``control.paper``.

    The norm of the gradients counts as 1: a ``quantise_above_norm`` from 1 on switches quantisation off.
    """

    def __init__(self, buckets: Sequence[Bucket], measured: MeasuredCosts, parameters: PaperParameters) -> None:
        super().__init__(buckets, measured, parameters)
        self._state, self._choice = paper.start(parameters)

    @property
    def reason(self) -> str:
        """See ``Controller``."""
        state = self._state
        return (
            f"{'Start-up' if state.starting else 'NetSense'}: BtlBw {8e-6 * state.bottleneck_bytes_per_s:.4g} Mbit/s, "
            f"RTprop {1e3 * state.propagation_s:.4g} ms, ratio {state.ratio:.4g}."
        )

    def decide(self, sent: Sequence[Choice], agreed: Agreed | None, remainder: Choice | None = None) -> None:
        """See ``Controller``."""
        if agreed is not None and remainder is None:
            data_bytes, busy_s = self._sensed(sent, agreed)
            interval = paper.Interval(data_bytes, busy_s, agreed.retransmissions)
            self._state, self._choice = paper.decide(self._state, interval, self._parameters)


class WindowedController(_OneRatio):
    """NetSenseML with BBR's windows, probing and draining. See ``control.windowed``."""

    def __init__(self, buckets: Sequence[Bucket], measured: MeasuredCosts, parameters: PaperParameters) -> None:
        super().__init__(buckets, measured, parameters)
        self._state, self._choice = windowed.start(parameters)
        self._dense_bytes = sum(transmission_cost(each.dense_choice, each, measured).out_bytes for each in buckets)

    @property
    def reason(self) -> str:
        """See ``Controller``."""
        state = self._state
        rate, step_s = state.bandwidth_bytes_per_s.value or 0.0, state.propagation_s.value or 0.0
        return (
            f"{'Start-up' if state.starting else f'Phase {state.phase} of the cycle'}: BtlBw {8e-6 * rate:.4g} Mbit/s, "
            f"RTprop {1e3 * step_s:.4g} ms, ratio {state.ratio:.4g}."
        )

    def decide(self, sent: Sequence[Choice], agreed: Agreed | None, remainder: Choice | None = None) -> None:
        """See ``Controller``."""
        if agreed is not None and remainder is None:
            data_bytes, busy_s = self._sensed(sent, agreed)
            step = windowed.Step(sent[0], data_bytes, busy_s, agreed.step_s)
            self._state, self._choice = windowed.decide(self._state, step, self._dense_bytes, self._parameters)


def controllers_of(mode: str, settings: BudgetSettings, parameters: PaperParameters) -> Controllers:
    """Return what makes the controllers of a mode. Raises ValueError if there is none of that name."""
    if mode not in MODES:
        raise ValueError(f"mode: expected one of {', '.join(MODES)}, got {mode!r:.100}")

    def made(buckets: Sequence[Bucket], measured: MeasuredCosts) -> Controller:
        if mode == "budget":
            return BudgetController(buckets, measured, settings)
        return (PaperController if mode == "paper" else WindowedController)(buckets, measured, parameters)

    return made
