"""Client arbitration by election id (P4Runtime specification, sections 5 and 16.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


class ElectionIdInUseError(Exception):
    """Another live stream bids this election id."""

    def __init__(self, election_id: int) -> None:
        super().__init__(f"election id {election_id} exists")


@dataclass(frozen=True, slots=True)
class Arbitration:
    """Live streams of one device and role, and their bids. Pure: every step returns the next state.

    ``bids`` has the election id of every live stream, ``None`` for one that never wants to be primary. ``highest_id``
    is the highest id ever seen, ``None`` before the first. No two streams bid the same id and none bids more than the
    highest, so the primary is the stream that bids the highest id. After it has left or lowered its bid there is no
    primary.
    """

    bids: Mapping[int, int | None] = field(default_factory=dict)
    highest_id: int | None = None

    @property
    def primary(self) -> int | None:
        """Stream that may write, None if there is none."""
        if self.highest_id is None:
            return None
        return next((stream for stream, election_id in self.bids.items() if election_id == self.highest_id), None)

    def bid(self, stream: int, election_id: int | None) -> tuple["Arbitration", tuple[int, ...]]:
        """Make or change a stream's bid.

        Returns the next state and the streams to notify, a new primary last. Raises ElectionIdInUseError.
        """
        others = tuple(other for other in self.bids if other != stream)
        if election_id is not None and any(self.bids[other] == election_id for other in others):
            raise ElectionIdInUseError(election_id)
        bids = {**self.bids, stream: election_id}
        if election_id is not None and (self.highest_id is None or election_id >= self.highest_id):
            return Arbitration(bids, election_id), (*others, stream)
        steps_down = self.primary == stream
        return replace(self, bids=bids), (*others, stream) if steps_down else (stream,)

    def leave(self, stream: int) -> tuple["Arbitration", tuple[int, ...]]:
        """Remove a stream; return the next state and the streams to notify."""
        bids = {other: election_id for other, election_id in self.bids.items() if other != stream}
        return replace(self, bids=bids), tuple(bids) if self.primary == stream else ()
