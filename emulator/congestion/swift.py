"""Swift: a window that holds a target delay (Kumar et al., SIGCOMM 2020, algorithm 1).

The delay is the round-trip time from the sending NIC; acknowledgements do not wait at NICs or switches. The paper's
window of the endpoint and its scaling by hops are left out: hosts here take no time, and one target serves a fabric.
"""

import math

from emulator.congestion.control import CongestionControl, Event, Words
from emulator.jit import compiled

(
    INITIAL_WINDOW,
    BASE_TARGET_S,
    ADDITIVE_INCREASE,
    BETA,
    MAX_DECREASE,
    FLOW_SCALING_RANGE_S,
    FLOW_SCALING_MIN_WINDOW,
    FLOW_SCALING_MAX_WINDOW,
    MIN_WINDOW,
    RETRANSMISSIONS_TO_RESET,
    LOWEST_RTT_S,
    RTT_S,
    LAST_DECREASE_S,
    RETRANSMISSIONS,
) = range(14)


@compiled
def target_delay_s(words: Words, window: float) -> float:
    """Return the delay to hold: longer for small windows, since more flows then share the queue (3.2)."""
    target_s = words[BASE_TARGET_S]
    if target_s == 0:
        target_s = 2 * words[LOWEST_RTT_S]
    fewest, most = math.sqrt(words[FLOW_SCALING_MIN_WINDOW]), math.sqrt(words[FLOW_SCALING_MAX_WINDOW])
    scaled = words[FLOW_SCALING_RANGE_S] / (1 / fewest - 1 / most) * (1 / math.sqrt(window) - 1 / most)
    return float(target_s + max(0.0, min(scaled, words[FLOW_SCALING_RANGE_S])))


@compiled
def reduced(words: Words, event: Event, factor: float) -> float:
    """Return the window times a factor, at most once per round-trip time."""
    if event.now_s - words[LAST_DECREASE_S] < words[RTT_S]:
        return event.window
    words[LAST_DECREASE_S] = event.now_s
    return float(max(words[MIN_WINDOW], event.window * factor))


def start(words: Words, _: Event) -> float:
    """Begin with the first window; there is no slow start."""
    return float(words[INITIAL_WINDOW])


def on_acknowledgement(words: Words, event: Event) -> float:
    """Grow by a part of a packet while the delay is short; else shrink by the share that is too long."""
    if event.delivered > 0:
        words[RETRANSMISSIONS] = 0
    delay_s = event.rtt_s
    if delay_s == 0:
        return event.window
    words[RTT_S] = delay_s
    if words[LOWEST_RTT_S] == 0 or delay_s < words[LOWEST_RTT_S]:
        words[LOWEST_RTT_S] = delay_s
    target_s = target_delay_s(words, event.window)
    if delay_s >= target_s:
        return reduced(words, event, max(1 - words[BETA] * (delay_s - target_s) / delay_s, 1 - words[MAX_DECREASE]))
    if not event.is_limited:
        return event.window
    return float(event.window + words[ADDITIVE_INCREASE] * event.delivered / max(1.0, event.window))


def on_loss(words: Words, event: Event) -> float:
    """Shrink as much as at once is allowed."""
    words[RETRANSMISSIONS] = 0
    return reduced(words, event, 1 - words[MAX_DECREASE])


def on_timeout(words: Words, event: Event) -> float:
    """Shrink likewise; after several timeouts in a row begin with the smallest window."""
    words[RETRANSMISSIONS] += 1
    if words[RETRANSMISSIONS] >= words[RETRANSMISSIONS_TO_RESET]:
        return float(words[MIN_WINDOW])
    return reduced(words, event, 1 - words[MAX_DECREASE])


SWIFT = CongestionControl(
    name="swift",
    start=start,
    on_acknowledgement=on_acknowledgement,
    on_loss=on_loss,
    on_timeout=on_timeout,
    parameters={
        "initial_window": 10.0,
        "base_target_s": 0.0,
        "additive_increase": 1.0,
        "beta": 0.8,
        "max_decrease": 0.5,
        "flow_scaling_range_s": 0.0,
        "flow_scaling_min_window": 0.1,
        "flow_scaling_max_window": 100.0,
        "min_window": 0.001,
        "retransmissions_to_reset": 5.0,
    },
    state=("lowest_rtt_s", "rtt_s", "last_decrease_s", "retransmissions"),
)
