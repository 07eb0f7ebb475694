"""What a congestion control is: four functions of a flow's words and of what has happened, each giving a window.

The functions are plain Python; the engine compiles them in. They may use numbers, local variables, ``if``, ``while``,
``for`` over ``range``, ``min``, ``max``, ``abs``, functions of ``math`` such as ``sqrt`` and ``exp``, constants of
their module and functions decorated with ``emulator.jit.compiled``. Division by 0 gives an infinity or no number.
They keep nothing but a flow's words, so flows are independent and runs repeat.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.float64]
"""Words of a flow: the control's parameters, then its state, each in the order in which the control names them."""


class Event(NamedTuple):
    """What a sender knows when an acknowledgement arrives or its timer expires.

    Attributes:
        now_s: Virtual time.
        window: Window of the flow in packets.
        delivered: Packets that the acknowledgement is the first to report, in order or not.
        marked: Packets with a congestion mark (CE) since the last acknowledgement.
        rtt_s: Round-trip time of the newest packet that has arrived, from the start of its first bit at the NIC; 0
            where there is no sample, as for packets that were sent twice (Karn and Partridge, SIGCOMM 1987).
        acknowledged: Lowest unacknowledged number.
        next: Number of the next new packet; once ``acknowledged`` has passed it, a round trip has passed.
        in_flight: Packets in the network, as far as the sender knows (the pipe of RFC 6675).
        is_limited: The window has kept packets back since the last acknowledgement, or half of it and more was in use.
            Else the NIC or the transfer's end is the limit, and the window should not grow (RFC 7661).
        is_recovering: Packets that were sent before the last loss was found are unacknowledged.
    """

    now_s: float
    window: float
    delivered: int
    marked: int
    rtt_s: float
    acknowledged: int
    next: int
    in_flight: int
    is_limited: bool
    is_recovering: bool


Reaction = Callable[[Words, Event], float]
"""From a flow's words and what has happened to its window, in packets."""


@dataclass(frozen=True, kw_only=True)
class CongestionControl:
    """A congestion control.

    Attributes:
        name: Its name.
        start: Called once per flow, whose state is zeros; returns the first window, in packets.
        on_acknowledgement: Called for every acknowledgement; returns the window.
        on_loss: Called after it where the acknowledgement shows that a packet is lost that was sent since the last
            call; so once for the losses of one window.
        on_timeout: Called where nothing was acknowledged for the timeout.
        parameters: Their values by name.
        state: Names of the state words.
        is_ecn_capable: Its packets are marked where others are dropped: they travel as ECT(0) (RFC 3168).

    A window below 1 lets one packet go in each round-trip time divided by the window. The engine limits windows to
    what its receivers can keep count of, 62 packets.
    """

    name: str
    start: Reaction
    on_acknowledgement: Reaction
    on_loss: Reaction
    on_timeout: Reaction
    parameters: Mapping[str, float] = field(default_factory=dict)
    state: tuple[str, ...] = ()
    is_ecn_capable: bool = False

    def __post_init__(self) -> None:
        names = [*self.parameters, *self.state]
        if len(set(names)) < len(names):
            raise ValueError(f"congestion control {self.name!r} has two words of one name among {', '.join(names)}")
        for name, value in self.parameters.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"congestion control {self.name!r}: {name} must be a finite number, not {value!r}")

    @property
    def num_words(self) -> int:
        """Words that a flow needs."""
        return len(self.parameters) + len(self.state)

    @property
    def functions(self) -> tuple[Reaction, Reaction, Reaction, Reaction]:
        """The four functions, in the order of this class."""
        return self.start, self.on_acknowledgement, self.on_loss, self.on_timeout

    def with_parameters(self, changes: Mapping[str, float]) -> "CongestionControl":
        """Return the control with other values for some of its parameters. Raises ValueError for an unknown one."""
        for name in changes:
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise ValueError(f"congestion control {self.name!r} has no parameter {name!r}; it has {known}")
        return replace(self, parameters={**self.parameters, **changes})


FIXED = "fixed"
"""Name of the transport's own fixed windows, which are no plug-in."""
