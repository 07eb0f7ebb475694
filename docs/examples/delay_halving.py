"""A congestion control of one's own: one more packet per round trip, and half the window where the trip takes long."""

from emulator.congestion import CongestionControl, Event, Words

LONGEST, LOWEST_S, NEXT_CUT = range(3)


def start(words: Words, _: Event) -> float:
    """Begin with two packets."""
    words[LOWEST_S] = 1.0
    return 2.0


def on_acknowledgement(words: Words, event: Event) -> float:
    """Halve the window, at most once per round trip, when one takes longer than so many times the shortest."""
    if event.rtt_s > 0:
        words[LOWEST_S] = min(words[LOWEST_S], event.rtt_s)
        if event.rtt_s > words[LONGEST] * words[LOWEST_S] and event.acknowledged > words[NEXT_CUT]:
            words[NEXT_CUT] = event.next
            return max(1.0, event.window / 2)
    return event.window + event.delivered / event.window if event.is_limited else event.window


def on_loss(words: Words, event: Event) -> float:
    """Halve the window."""
    words[NEXT_CUT] = event.next
    return max(1.0, event.window / 2)


def on_timeout(_: Words, event: Event) -> float:
    """Send one packet a round trip."""
    return min(1.0, event.window)


CONTROL = CongestionControl(
    name="delay-halving",
    start=start,
    on_acknowledgement=on_acknowledgement,
    on_loss=on_loss,
    on_timeout=on_timeout,
    parameters={"longest": 1.5},
    state=("lowest_s", "next_cut"),
)
