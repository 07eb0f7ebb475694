"""NetSenseML's controller as BBR would have it: windows, probing and draining (Cardwell et al., ACM Queue 14(5), 2016).

The paper takes the time of a transmission as its round trip, and its ratio collapses: see ``paper``. Here a round trip
is what it is to a training job: one step. Gradients leave, their sum comes back, and only then can the next leave.
RTprop is then the shortest step, which waits for no network, and the bandwidth-delay product is what the network can
carry in a step that it does not prolong. As in BBR

- BtlBw is the maximum delivery rate over 10 round trips, RTprop the minimum round trip over 10 s;
- start-up doubles until the delivery rate has not grown by a quarter for three round trips;
- then a cycle of eight round trips probes with 1.25 of the product, drains with 0.75, and cruises with 1;
- where RTprop has not been met for 10 s, one round trip at the floor looks for it.

It transmits for a whole step, though gradients leave in the backward pass alone, and knows no deadline: what it sends
prolongs the step. ``budget`` is the controller that does not.
"""

from dataclasses import dataclass, field, replace

from hostlib.compression.choice import Choice, Precision
from hostlib.compression.control.filters import WindowedMaximum, WindowedMinimum
from hostlib.compression.control.paper import PaperParameters, compress

BANDWIDTH_WINDOW_ROUND_TRIPS = 10
PROPAGATION_WINDOW_S = 10.0
CYCLE_GAINS = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
STARTUP_GAIN = 2.0
"""BBR's is 2/ln 2 in packets per round trip; both double what is in flight."""
FULL_PIPE_GROWTH = 1.25
FULL_PIPE_ROUND_TRIPS = 3


@dataclass(frozen=True, slots=True)
class Step:
    """What was measured of one step.

    Attributes:
        sent: What its gradients were sent as.
        data_bytes: What a rank sent of them.
        transfer_s: How long the network was busy with them.
        step_s: The step.
        gradient_norm: As ``paper.Interval`` has it.
    """

    sent: Choice
    data_bytes: float
    transfer_s: float
    step_s: float
    gradient_norm: float = 1


@dataclass(frozen=True, slots=True)
class WindowedState:
    """What the controller remembers.

    Attributes:
        ratio: Of the next transmission, before Algorithm 2.
        steps: Steps so far.
        time_s: Their sum, the controller's only clock.
        bandwidth_bytes_per_s: BtlBw.
        propagation_s: RTprop.
        propagation_met_s: When a step was last as short as RTprop.
        full_bytes_per_s: The delivery rate at which growth was last seen in the start-up.
        full_steps: Steps without growth; at three the start-up is over.
        phase: Where in the cycle the next transmission is.
    """

    ratio: float
    steps: int = 0
    time_s: float = 0
    bandwidth_bytes_per_s: WindowedMaximum = field(
        default_factory=lambda: WindowedMaximum(BANDWIDTH_WINDOW_ROUND_TRIPS)
    )
    propagation_s: WindowedMinimum = field(default_factory=lambda: WindowedMinimum(PROPAGATION_WINDOW_S))
    propagation_met_s: float = 0
    full_bytes_per_s: float = 0
    full_steps: int = 0
    phase: int = 0

    @property
    def starting(self) -> bool:
        """Whether the start-up goes on."""
        return self.full_steps < FULL_PIPE_ROUND_TRIPS


def start(parameters: PaperParameters) -> tuple[WindowedState, Choice]:
    """Return the state before the first step, and what that step's gradients are sent as."""
    return WindowedState(parameters.start_ratio), compress(parameters.start_ratio, 1, parameters)


def decide(
    state: WindowedState, step: Step, dense_bytes: float, parameters: PaperParameters
) -> tuple[WindowedState, Choice]:
    """Return the next state and what the next step's gradients are sent as.

    A step that sent nothing or took no time says nothing, and changes nothing.

    Args:
        state: The last call's, or that of ``start``.
        step: A step, at most once each, in their order.
        dense_bytes: What a rank sends in a step of plain all-reduces.
        parameters: The floor, the share of the product, and all of Algorithm 2.
    """
    if step.data_bytes > 0 and step.transfer_s > 0 and step.step_s > 0:
        state = _chosen(_sensed(state, step), step, dense_bytes, parameters)
    return state, compress(state.ratio, step.gradient_norm, parameters)


def _sensed(state: WindowedState, step: Step) -> WindowedState:
    steps, time_s = state.steps + 1, state.time_s + step.step_s
    shortest_s = state.propagation_s.value
    met = shortest_s is None or step.step_s <= shortest_s
    rate = step.data_bytes / step.transfer_s
    grows = rate >= FULL_PIPE_GROWTH * state.full_bytes_per_s
    return replace(
        state,
        steps=steps,
        time_s=time_s,
        bandwidth_bytes_per_s=state.bandwidth_bytes_per_s.update(steps, rate),
        propagation_s=state.propagation_s.update(time_s, step.step_s),
        propagation_met_s=time_s if met else state.propagation_met_s,
        full_bytes_per_s=rate if grows else state.full_bytes_per_s,
        full_steps=state.full_steps + (not grows) if state.starting else state.full_steps,
    )


def _chosen(state: WindowedState, step: Step, dense_bytes: float, parameters: PaperParameters) -> WindowedState:
    if state.time_s - state.propagation_met_s > PROPAGATION_WINDOW_S:
        return replace(state, ratio=parameters.floor, propagation_met_s=state.time_s)
    if state.starting:
        return replace(state, ratio=min(1, STARTUP_GAIN * state.ratio))
    bandwidth, propagation_s = state.bandwidth_bytes_per_s.value, state.propagation_s.value
    assert bandwidth is not None  # a step was sensed
    assert propagation_s is not None
    gain = CYCLE_GAINS[state.phase]
    target_bytes = gain * parameters.bdp_share * bandwidth * propagation_s
    if target_bytes >= dense_bytes:
        ratio = 1.0
    else:
        quantised = step.sent.precision == Precision.FP16 and step.sent.ratio < 1
        sent_ratio = step.sent.ratio / 2 if quantised else step.sent.ratio  # before Algorithm 2
        ratio = min(1, max(parameters.floor, sent_ratio * target_bytes / step.data_bytes))
    return replace(state, ratio=ratio, phase=(state.phase + 1) % len(CYCLE_GAINS))
