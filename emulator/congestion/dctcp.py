"""DCTCP: a window that shrinks by the share of marked packets (Alizadeh et al., SIGCOMM 2010; RFC 8257).

Growth and the reaction to losses are TCP's. Acknowledgements carry the number of marked packets (RFC 9768), so the
receiver needs no state machine for delayed acknowledgements.
"""

import math

from emulator.congestion.control import CongestionControl, Event, Words
from emulator.congestion.reno import MIN_THRESHOLD, grown

INITIAL_WINDOW, GAIN, ALPHA, THRESHOLD, DELIVERED, MARKED, WINDOW_END, REDUCTION_END = range(8)


def start(words: Words, _: Event) -> float:
    """Begin in slow start, with the estimate at its highest (RFC 8257, 3.3)."""
    words[ALPHA] = 1.0
    words[THRESHOLD] = math.inf
    return float(words[INITIAL_WINDOW])


def on_acknowledgement(words: Words, event: Event) -> float:
    """Update the estimate once per window, shrink at most once per window, and grow without marks."""
    words[DELIVERED] += event.delivered
    words[MARKED] += event.marked
    if event.acknowledged > words[WINDOW_END]:
        if words[DELIVERED] > 0:
            share = min(1.0, words[MARKED] / words[DELIVERED])
            words[ALPHA] += words[GAIN] * (share - words[ALPHA])
        words[DELIVERED] = words[MARKED] = 0.0
        words[WINDOW_END] = event.next
    if event.is_recovering:
        return event.window
    if event.marked > 0:
        if event.acknowledged <= words[REDUCTION_END]:
            return event.window
        words[REDUCTION_END] = event.next
        words[THRESHOLD] = max(event.window * (1 - words[ALPHA] / 2), MIN_THRESHOLD)
        return float(words[THRESHOLD])
    if not event.is_limited:
        return event.window
    return grown(event.window, words[THRESHOLD], event.delivered)


def on_loss(words: Words, event: Event) -> float:
    """Halve the window."""
    words[THRESHOLD] = max(event.window / 2, MIN_THRESHOLD)
    words[REDUCTION_END] = event.next
    return float(words[THRESHOLD])


def on_timeout(words: Words, event: Event) -> float:
    """Begin anew with one packet, and end slow start at half the window."""
    words[THRESHOLD] = max(event.window / 2, MIN_THRESHOLD)
    return 1.0


DCTCP = CongestionControl(
    name="dctcp",
    start=start,
    on_acknowledgement=on_acknowledgement,
    on_loss=on_loss,
    on_timeout=on_timeout,
    parameters={"initial_window": 10.0, "gain": 1 / 16},
    state=("alpha", "threshold", "delivered", "marked", "window_end", "reduction_end"),
    is_ecn_capable=True,
)
