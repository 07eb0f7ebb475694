"""TCP's congestion control: slow start, congestion avoidance and fast recovery.

RFC 5681 with windows in packets; the bytes counted are those acknowledged (RFC 3465); what is in flight during a
recovery is RFC 6675's pipe, which the transport keeps. The first window is that of RFC 6928.
"""

import math

from emulator.congestion.control import CongestionControl, Event, Words
from emulator.jit import compiled

INITIAL_WINDOW, THRESHOLD = range(2)
MIN_THRESHOLD = 2.0


@compiled
def grown(window: float, threshold: float, delivered: int) -> float:
    """Return the window after so many more packets have arrived: doubled, or one larger, in a round-trip time."""
    if window < threshold:
        return min(window + delivered, max(threshold, window + 1.0))
    return window + delivered / window


def start(words: Words, _: Event) -> float:
    """Begin in slow start."""
    words[THRESHOLD] = math.inf
    return float(words[INITIAL_WINDOW])


def on_acknowledgement(words: Words, event: Event) -> float:
    """Grow, unless the window is no limit or a loss is being mended."""
    if event.is_recovering or not event.is_limited:
        return event.window
    return grown(event.window, words[THRESHOLD], event.delivered)


def on_loss(words: Words, event: Event) -> float:
    """Halve the window."""
    words[THRESHOLD] = max(event.window / 2, MIN_THRESHOLD)
    return float(words[THRESHOLD])


def on_timeout(words: Words, event: Event) -> float:
    """Begin anew with one packet, and end slow start at half the window."""
    words[THRESHOLD] = max(event.window / 2, MIN_THRESHOLD)
    return 1.0


RENO = CongestionControl(
    name="reno",
    start=start,
    on_acknowledgement=on_acknowledgement,
    on_loss=on_loss,
    on_timeout=on_timeout,
    parameters={"initial_window": 10.0},
    state=("threshold",),
)
