"""Peers that do not get through the handshake: counted by the reason, and logged without a flood."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from controller.access.refusal_log import RefusalLog
from controller.metrics import OPENFLOW_REFUSED
from controller.southbound.openflow.channel_errors import Misbehaviour, MisbehaviourError

_MOST_PEERS = 512
_MOST_OF_AN_ADDRESS = 256
"""Peers in the handshake; one more is refused at once."""
_HELD_S = 1.0
"""So long a refused peer counts as one in the handshake, so that it cannot come by the thousand."""


class RefusedPeers:
    """The peers in the handshake, and what is told of those that are refused."""

    def __init__(self) -> None:
        self._log = RefusalLog(asyncio.get_running_loop().time)
        self._num_of: Counter[str] = Counter()

    @contextmanager
    def handshake(self, address: str) -> Iterator[None]:
        """Count a peer while the context lasts, and a second longer where it is refused.

        Raises:
            MisbehaviourError: Too many are in it.
        """
        if self._num_of.total() >= _MOST_PEERS:
            raise MisbehaviourError(Misbehaviour.TOO_MANY, f"{_MOST_PEERS} peers are in the handshake")
        if self._num_of[address] >= _MOST_OF_AN_ADDRESS:
            raise MisbehaviourError(
                Misbehaviour.TOO_MANY, f"{_MOST_OF_AN_ADDRESS} peers of this address are in the handshake"
            )
        self._num_of[address] += 1
        try:
            yield
        except BaseException:
            asyncio.get_running_loop().call_later(_HELD_S, self._leave, address)
            raise
        else:
            self._leave(address)

    def tell(self, peer: str, address: str, error: MisbehaviourError) -> None:
        """Count a peer as refused, and log why."""
        OPENFLOW_REFUSED.labels(error.reason).inc()
        self._log.tell("OpenFlow connection", peer, address, str(error))

    def _leave(self, address: str) -> None:
        self._num_of[address] -= 1
        if not self._num_of[address]:
            del self._num_of[address]
