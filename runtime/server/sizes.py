"""Arrays of which no bound was known: the server learns from hosts how many rows they have.

From then on they are arrays like all others, with a bound, and count in the quota of their client. What exceeds the
quota fails, and is released.
"""

from collections.abc import Mapping

from runtime.messages import Failure, ReleaseOn, Sized
from runtime.server.accounts import Account, HeldArray
from runtime.server.hosts import Host


class Sizes:
    """Takes what hosts say."""

    def __init__(self, accounts: Mapping[int, Account], hosts: Mapping[int, Host]) -> None:
        self._accounts = accounts
        self._hosts = hosts

    def take(self, message: Sized) -> None:
        """Note the rows of a shard, or that it will not be there; nothing, if the client has released it."""
        account = self._accounts.get(message.client)
        held = account.arrays.get(message.handle) if account is not None else None
        if account is None or held is None or held.failure is not None or held.spec.is_bounded:
            return
        if message.rows < 0:
            held.end(is_there=False)
            return
        size_bytes = message.rows * held.spec.row_bytes
        excess = account.ledger.excess(0, size_bytes)
        if excess is not None:
            self._refuse(account, message.handle, held, excess)
            return
        account.count(held, size_bytes)
        if held.take_rows(message.shard, message.rows):
            held.end(is_there=True)

    def _refuse(self, account: Account, handle: int, held: HeldArray, excess: str) -> None:
        held.failure = Failure("RefusedError", f"array {handle}: {excess}")
        account.count(held, -held.size_bytes)
        for number in held.layout.placement.shards_by_host:
            if number in self._hosts:
                self._hosts[number].channel.send(ReleaseOn(account.number, (handle,)))
        held.end(is_there=False)
