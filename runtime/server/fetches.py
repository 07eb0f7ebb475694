"""Arrays on their way from hosts to clients."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count

from runtime import messages
from runtime.messages import Failure
from runtime.server.accounts import Account, HeldArray
from runtime.server.hosts import Host


@dataclass(eq=False)
class _Fetch:
    account: Account
    request: int
    hosts: frozenset[int]
    has_data: bool
    left: int


class Fetches:
    """Asks hosts for shards and passes them on; the data are not looked at."""

    def __init__(self, hosts: Mapping[int, Host]) -> None:
        self._hosts = hosts
        self._fetches: dict[int, _Fetch] = {}
        self._numbers = count()

    def start(self, account: Account, message: messages.Fetch) -> None:
        """Ask for an array of a client; of copies, one is enough.

        Hosts say by themselves when an array is there. They are asked only for data, and why there are none.
        """
        held = account.arrays.get(message.handle)
        if held is None:
            failure = Failure("RefusedError", f"there is no array {message.handle}")
            account.channel.send(messages.FetchFailed(message.request, failure))
        elif message.data or held.has_ended or held.failure is not None:
            self._ask(account, message, held)
        else:
            held.when_ended(partial(self._ask, account, message, held))

    def _ask(self, account: Account, message: messages.Fetch, held: HeldArray) -> None:
        if held.failure is not None:
            account.channel.send(messages.FetchFailed(message.request, held.failure))
            return
        if held.is_there and not message.data:
            account.channel.send(messages.Fetched(message.request, 0, held.rows))
            return
        hosts = held.layout.placement.hosts
        shards = range(1) if message.data and held.layout.sharding.axis is None else range(len(hosts))
        number = next(self._numbers)
        asked = frozenset(hosts[shard] for shard in shards)
        self._fetches[number] = _Fetch(account, message.request, asked, message.data, len(shards))
        for shard in shards:
            ask = messages.FetchShard(number, account.number, message.handle, shard, message.data)
            self._hosts[hosts[shard]].channel.send(ask)

    def arrived(self, message: messages.ShardFetched, payload: bytearray | memoryview) -> None:
        """Pass a shard on."""
        fetch = self._fetches.get(message.request)
        if fetch is not None:
            fetch.left -= 1
            if fetch.has_data or fetch.left == 0:
                fetch.account.channel.send(messages.Fetched(fetch.request, message.shard), payload)
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
            if host in fetch.hosts:
                self.failed(number, failure)

    def use(self, host: int) -> bool:
        """Return whether a host was asked for what has not come."""
        return any(host in fetch.hosts for fetch in self._fetches.values())

    def forget(self, account: Account) -> None:
        """Forget what a client asked for."""
        self._fetches = {number: fetch for number, fetch in self._fetches.items() if fetch.account is not account}
