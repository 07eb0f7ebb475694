"""Which hosts there are: those that the server starts with, those that join and leave, and those that are lost."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from runtime import messages
from runtime.frames import MOST_BYTES, Frame
from runtime.messages import Failure
from runtime.server.accounts import Account
from runtime.server.channel import Channel
from runtime.server.departures import Departures
from runtime.server.executions import Executions
from runtime.server.fetches import Fetches
from runtime.server.hosts import Host
from runtime.server.islands import Islands, Slice
from runtime.server.settings import ServerSettings
from runtime.substrates.interface import HostSettings, NewHost, Substrate, SubstrateError

_PATIENCE_S = 30.0
"""How long a host that was admitted may take to connect."""
_OFTEN_S = 0.01
_RETRY_S = 1.0
_MOST_RETRY_S = 60.0


class Membership:
    """Takes hosts in, lets them leave, and notes which are lost. ``on_frame`` gets what each host sends."""

    def __init__(
        self,
        settings: ServerSettings,
        substrate: Substrate,
        islands: Islands,
        hosts: dict[int, Host],
        accounts: Mapping[int, Account],
        executions: Executions,
        fetches: Fetches,
        on_frame: Callable[[int, Frame], None],
    ) -> None:
        self._settings = settings
        self._substrate = substrate
        self._islands = islands
        self._hosts = hosts
        self._accounts = accounts
        self._executions = executions
        self._fetches = fetches
        self._on_frame = on_frame
        self.departures = Departures(islands, hosts, accounts)
        self._expected: dict[int, asyncio.Future[None]] = {}
        self._joining: set[int] = set()
        self._one_leaves = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def start(self) -> None:
        """Start the hosts that the server begins with, and wait until all are there. Raises SubstrateError."""
        loop = asyncio.get_running_loop()

        def tell(host: int, why: str) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._take_end, host, why)

        self._substrate.watch(tell)
        expected = [self._expect(number) for number in self._islands.hosts]
        for number in self._islands.hosts:
            self._spawn(number)
        await asyncio.gather(*expected)

    def close(self) -> None:
        """Take no note of hosts that end from now on: all do."""
        self._is_closed = True

    def _expect(self, number: int) -> asyncio.Future[None]:
        """Return what is done once a host has connected, and fails with SubstrateError where it cannot be started."""
        expected = self._expected[number] = asyncio.get_running_loop().create_future()
        return expected

    def _spawn(self, number: int) -> None:
        """Start the executor of a host that is expected. Whatever prevents that, who expects it is told."""
        try:
            self._substrate.spawn(self._host_settings(number))
        except SubstrateError as error:
            self._expected[number].set_exception(error)
        except Exception as error:
            self._expected[number].set_exception(SubstrateError(f"host {number}: {error!r}"))

    def _take_end(self, number: int, why: str) -> None:
        """Take a substrate's word that an executor has ended, which its connection may not have said."""
        if self._is_closed:
            return
        expected, host = self._expected.get(number), self._hosts.get(number)
        if host is not None:
            host.cause = why
            host.channel.abort()
            return
        self._substrate.kill(number)  # it has left, or never came
        if expected is not None and not expected.done():
            expected.set_exception(SubstrateError(f"host {number}: {why}"))

    def greet(self, channel: Channel, hello: messages.Hello) -> None:
        """Take a host in that has shown the secret, if it is expected."""
        number = int(hello.name) if hello.name.isdecimal() else -1
        expected = self._expected.pop(number, None)
        if expected is None or expected.done():  # nobody waits for it any more
            channel.refuse(f"host {hello.name:.20}: is not expected")
            return
        if number in self._joining:
            self._joining.remove(number)
            try:
                self._place(self._islands.add_host(number))
            except ValueError as error:  # its island has become full meanwhile
                channel.refuse(str(error))
                expected.set_exception(SubstrateError(f"host {number}: {error}"))
                return
        network_host = self._settings.network_hosts.get(number)
        island = self._islands.hosts[number].island
        host = Host(number, island, channel, hello.place, network_host, hello.network_address)
        channel.reader.most_bytes = MOST_BYTES
        channel.on_frame = lambda _, frame: self._on_frame(number, frame)
        channel.on_close = lambda _: self._lose(host)
        self._hosts[number] = host
        self._tell_peers()
        expected.set_result(None)

    def add(self, account: Account, message: messages.AddHost) -> None:
        """Let a host join, for an operator."""
        self._begin(account, message.request, self._add(account, message))

    def remove(self, account: Account, message: messages.RemoveHost) -> None:
        """Let a host leave, for an operator."""
        self._begin(account, message.request, self._remove(message))

    def _begin(self, account: Account, request: int, work: Coroutine[Any, Any, object]) -> None:
        """Do what an operator asks for, and answer."""

        async def answer() -> None:
            try:
                account.ledger.settings.check_operator()
                account.channel.send(await work)
            except ValueError as error:
                account.channel.send(messages.Refused(request, str(error)))
            finally:
                work.close()

        task = asyncio.get_running_loop().create_task(answer())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _add(self, account: Account, message: messages.AddHost) -> messages.HostAdded:
        if message.is_by_hand and self._settings.ray is not None:
            raise ValueError("hosts of a Ray cluster are started there")
        number = self._islands.admit_host(message.host)
        expected = self._expect(number)
        self._joining.add(number)
        try:
            if message.is_by_hand:
                account.channel.send(messages.HostAdmitted(message.request, self._host_settings(number)))
            else:
                self._spawn(number)
            await asyncio.wait_for(expected, _PATIENCE_S)
        except (TimeoutError, OSError, SubstrateError) as error:
            self._forget(number)
            self._substrate.kill(number)
            why = str(error) or f"did not connect within {_PATIENCE_S:g} s"
            raise ValueError(why if isinstance(error, SubstrateError) else f"host {number}: {why}") from None
        return messages.HostAdded(message.request, number)

    def _forget(self, number: int) -> None:
        """Forget a host that was to join."""
        self._expected.pop(number, None)
        self._joining.discard(number)
        del self._islands.hosts[number]

    async def _remove(self, message: messages.RemoveHost) -> messages.HostRemoved:
        number = message.host
        async with self._one_leaves:
            host = self._hosts.get(number)
            if host is None:
                raise ValueError(f"host {number}: is not there")
            departure = self.departures.begin(number)
            while not (
                self.departures.advance(departure)
                and not self._executions.use(number)
                and not self._fetches.use(number)
            ):
                await asyncio.sleep(_OFTEN_S)
                if number not in self._hosts:
                    self.departures.advance(departure)  # what was lost needs no room elsewhere
                    raise ValueError(f"host {number}: ended before all of its arrays had moved")
            del self._hosts[number]
            self._islands.remove_host(number)
            host.channel.on_close = lambda _: None
            host.channel.close()
            self._tell_peers()
            return messages.HostRemoved(message.request, departure.moved)

    def _lose(self, host: Host) -> None:
        """Fail what lay on a host or was to be computed there, and map its slices to others."""
        if self._is_closed:
            return
        del self._hosts[host.number]
        was = self._islands.hosts[host.number]
        self._tell_peers()
        cause = f": {host.cause}" if host.cause else ""
        failure = Failure("LostError", f"host {host.number} of island {host.island} ended{cause}")
        self._executions.abort_on(host.number, failure)
        lost = []
        for account in self._accounts.values():
            account.groups += 1
            for held in account.arrays.values():
                if held.failure is None and host.number in held.layout.placement.shards_by_host:
                    held.failure = failure
                    lost.append(held)
        self._fetches.fail_on(host.number, failure)
        remapped, unmapped = self._islands.remove_host(host.number)
        self._place(remapped)
        by_label = {account.label: account for account in self._accounts.values()}
        for each in unmapped:
            by_label[each.client].displace(each.number)
        for held in lost:  # only now, for those who wait for them go on
            held.end(is_there=False)
        if self._substrate.lost(host.number):
            self._replace(host.number, was)

    def _replace(self, lost: int, was: NewHost, delay_s: float = _RETRY_S) -> None:
        """Let a host take the place of one that was lost, once there is room for it. One that fails is tried again."""
        if self._is_closed:
            return
        number = self._islands.admit_host(was)

        def joined(expected: asyncio.Future[None]) -> None:
            if not expected.cancelled() and (error := expected.exception()) is not None:
                self._forget(number)
                print(f"nothing takes the place of host {lost} yet: {error}", file=sys.stderr, flush=True)
                again = partial(self._replace, lost, was, min(2 * delay_s, _MOST_RETRY_S))
                asyncio.get_running_loop().call_later(delay_s, again)

        self._expect(number).add_done_callback(joined)
        self._joining.add(number)
        self._spawn(number)

    def _place(self, slices: Sequence[Slice]) -> None:
        by_label = {account.label: account for account in self._accounts.values()}
        for each in slices:
            by_label[each.client].place(each)

    def _tell_peers(self) -> None:
        for each in self._hosts.values():
            places = {other.number: other.place_for(each) for other in self._hosts.values()}
            each.channel.send(messages.Peers(places))

    def _host_settings(self, number: int) -> HostSettings:
        host, settings = self._islands.hosts[number], self._settings
        path = f"unix:{settings.folder}/host-{number}"
        network_host = settings.network_hosts.get(number)
        return HostSettings(
            number,
            host.devices,
            path if settings.network == "shared-memory" else "127.0.0.1:0",
            settings.address,
            settings.secret,
            settings.preparation_s,
            settings.dispatch != "parallel",
            settings.folder,
            host.device_memory_bytes,
            host.host_memory_bytes,
            "" if network_host is None else f"{network_host.address}:0",
            path if settings.network == "machines" else "",
            host.island,
            network_host is not None and bool(settings.controllers),
        )
