"""What one rank senses of its steps and of the network: times of buckets, TCP's counters.

All times are durations on this process's own clock, which no other rank needs to share: how long a collective took
here, and how long after the forward pass a bucket was ready. The clock is the monotonic one, which never jumps.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hostlib.compression.lanes import Carried
from hostlib.torch.sockets import AdoptedSocket, ConnectionGoneError, Endpoints, connections

_now_s = time.perf_counter


@dataclass(frozen=True, slots=True)
class StepTimes:
    """One step of one rank, in seconds.

    ``network_s``, ``ready_s`` and ``exchange_s`` have one number for each bucket: how long it took from the end of its
    encoding to the end of its last collective, less what it computed between them; when its gradients were there after
    the backward pass began; and how much of the first an exchange took. Where a remainder travelled before them, all
    have one more, the last: how long it took, when it had come, 0 if that was before the backward pass, and its
    exchange. ``backward_s`` is when the last gradients were there. ``compute_s`` is
    the step without what it waited for the network, ``step_s`` the whole.
    """

    network_s: tuple[float, ...]
    ready_s: tuple[float, ...]
    exchange_s: tuple[float, ...]
    backward_s: float
    compute_s: float
    step_s: float


class StepClock:
    """Times steps. The backward pass begins where the last forward pass before it has ended."""

    def __init__(self) -> None:
        self._forward_ended_s = self._ended_s = _now_s()

    def forward_ended(self) -> None:
        """Note that a forward pass has ended."""
        self._forward_ended_s = _now_s()

    def begin(self) -> float:
        """Return when the backward pass began whose first bucket is ready now."""
        return self._forward_ended_s

    def step(self, begin_s: float, buckets: Sequence[Carried], remainder: Carried | None = None) -> StepTimes:
        """Return the times of a step that is complete, which began its backward pass at a time."""
        before = [] if remainder is None else [remainder]
        last_s = max(bucket.ready_s for bucket in buckets)
        before_s, self._ended_s = self._ended_s, max(last_s, *(bucket.completed_s for bucket in buckets))
        return StepTimes(
            tuple(max(0.0, each.completed_s - each.encoded_s - each.between_s) for each in (*buckets, *before)),
            (
                *(max(0.0, bucket.ready_s - begin_s) for bucket in buckets),
                *(max(0.0, each.completed_s - begin_s) for each in before),
            ),
            tuple(each.exchange_s for each in (*buckets, *before)),
            max(0.0, last_s - begin_s),
            max(0.0, last_s - before_s),
            max(0.0, self._ended_s - before_s),
        )


@dataclass(frozen=True, slots=True)
class Counters:
    """TCP's counters of one group's connections: payload that was sent, segments that were sent again.

    ``round_trip_s`` is the shortest smoothed round trip; None where there is no connection.
    """

    sent_bytes: int = 0
    retransmissions: int = 0
    round_trip_s: float | None = None


class GroupSockets:
    """The TCP connections of one process group, which its back end owns.

    One that is gone is left out. With a back end that uses no TCP there are none, and all counters stay at 0.
    """

    def __init__(self, opened: Iterable[Endpoints]) -> None:
        self._sockets = list(AdoptedSocket.open_all(frozenset(opened)).values())

    def counters(self) -> Counters:
        """Read the counters of all connections."""
        sent, again, round_trips = 0, 0, []
        for each in self._sockets:
            try:
                sent += each.sent_bytes() or 0
                again += each.retransmissions() or 0
                round_trips.append(each.round_trip_s() or 0.0)
            except ConnectionGoneError:
                continue
        return Counters(sent, again, min(round_trips, default=None))


class OpenedConnections:
    """Which connections this process opens, from now on."""

    def __init__(self) -> None:
        self._before = connections()

    def sockets(self) -> GroupSockets:
        """Return those that were opened since."""
        return GroupSockets(connections() - self._before)
