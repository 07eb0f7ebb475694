"""Arrays on their way from hosts to clients."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from runtime import messages
from runtime.messages import Failure
from runtime.server.accounts import Account, HeldArray
from runtime.server.hosts import Host


@dataclass(eq=False)
class _Fetch:
    account: Account
    request: int
    held: HeldArray
    left: int


class Fetches:
    """Asks hosts for shards and passes them on; the data are not looked at."""

    def __init__(self, hosts: Mapping[int, Host]) -> None:
        self._hosts = hosts
        self._fetches: dict[int, _Fetch] = {}
        self._numbers = count()

    def start(self, account: Account, message: messages.Fetch) -> None:
        """Ask for an array of a client. Of copies, one is enough, unless only their being there is asked for."""
        held = account.arrays.get(message.handle)
        if held is None:
            failure = Failure("RefusedError", f"there is no array {message.handle}")
            account.channel.send(messages.FetchFailed(message.request, failure))
            return
        if held.failure is not None:
            account.channel.send(messages.FetchFailed(message.request, held.failure))
            return
        hosts = held.layout.placement.hosts
        shards = range(1) if message.data and held.layout.sharding.axis is None else range(len(hosts))
        number = next(self._numbers)
        self._fetches[number] = _Fetch(account, message.request, held, len(shards))
        for shard in shards:
            ask = messages.FetchShard(number, account.number, message.handle, shard, message.data)
            self._hosts[hosts[shard]].channel.send(ask)

    def arrived(self, message: messages.ShardFetched, payload: bytearray | memoryview) -> None:
        """Pass a shard on."""
        fetch = self._fetches.get(message.request)
        if fetch is not None:
            fetch.account.channel.send(messages.Fetched(fetch.request, message.shard), payload)
            fetch.left -= 1
            if fetch.left == 0:
                del self._fetches[message.request]

    def failed(self, request: int, failure: Failure) -> None:
        """Tell a client that a shard will not come; once for the whole array."""
        fetch = self._fetches.pop(request, None)
        if fetch is not None:
            fetch.account.channel.send(messages.FetchFailed(fetch.request, failure))

    def fail_on(self, host: int, failure: Failure) -> None:
        """Fail what was asked of a host that is gone."""
        for number, fetch in tuple(self._fetches.items()):
            if host in fetch.held.layout.placement.shards_by_host:
                self.failed(number, failure)

    def forget(self, account: Account) -> None:
        """Forget what a client asked for."""
        self._fetches = {number: fetch for number, fetch in self._fetches.items() if fetch.account is not account}
