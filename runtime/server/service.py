"""The server's process: it takes clients and executors in, and answers their messages."""

import asyncio
import hmac
import socket
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from runtime import messages
from runtime.frames import COMPLETION, ENQUEUED, ESTIMATE, MOST_BYTES, Frame, Kind
from runtime.messages import Failure
from runtime.scheduling.cluster import ClusterScheduler
from runtime.scheduling.earliest_need import EarliestNeed
from runtime.scheduling.fifo import Fifo
from runtime.scheduling.policy import Policy
from runtime.scheduling.shares import ProportionalShare
from runtime.server.accounts import Account, Ledger
from runtime.server.admission import Admission
from runtime.server.channel import Channel, Outbox
from runtime.server.dispatch import ParallelDispatch, SequentialDispatch
from runtime.server.executions import Executions
from runtime.server.fetches import Fetches
from runtime.server.hosts import Host
from runtime.server.islands import Islands, cpus_of
from runtime.server.membership import Membership
from runtime.server.operations import Operations
from runtime.server.plans import NumberedFunction, RegisteredProgram
from runtime.server.publications import FIRST_OPENED_HANDLE, Publications
from runtime.server.settings import ClientSettings, ServerSettings
from runtime.server.sizes import Sizes
from runtime.server.status import StatusReports
from runtime.substrates.interface import Substrate

if TYPE_CHECKING:
    from runtime.server.announcements import Announcements
    from runtime.server.path_loads import PathLoadQueries

_FIRST_GUESS_S = 1e-4
_LEARNING = 0.5
"""How much of what is expected of a function a new measurement of a host is."""


class Server:
    """The controller of all islands. Run ``serve`` once."""

    def __init__(self, settings: ServerSettings, substrate: Substrate) -> None:
        self._settings = settings
        self._islands = Islands(settings.islands)
        self._shares: list[ProportionalShare] = []
        self._schedulers = ClusterScheduler(self._new_policy, settings.look_ahead_s)
        for island in settings.islands:
            self._schedulers.add_island(island.name)
            self._schedulers.add_island(cpus_of(island.name))
        self._hosts: dict[int, Host] = {}
        self._accounts: dict[int, Account] = {}
        self._account_numbers = count()
        self._functions: WeakValueDictionary[int, NumberedFunction] = WeakValueDictionary()
        self._ledgers = {each.name: Ledger(each) for each in settings.clients}
        dispatch = ParallelDispatch if settings.dispatch == "parallel" else SequentialDispatch
        self._dispatch = dispatch(self._hosts)
        self._admission = Admission(
            self._execute, self._handle, lambda call: asyncio.get_running_loop().call_soon(call)
        )
        self._announcements = _announcements(settings.controllers, self._hosts)
        self._path_loads = _path_loads(self._announcements, self._hosts, self._islands)
        self._executions = Executions(
            self._schedulers, self._hosts, self._dispatch, self._admission.ended, self._announcements
        )
        self._fetches = Fetches(self._hosts)
        self._sizes = Sizes(self._accounts, self._hosts)
        self._publications = Publications(self._hosts, self._let_go)
        self._status = StatusReports(
            self._islands, self._hosts, self._accounts, self._publications, self._announcements
        )
        self._membership = Membership(
            settings,
            substrate,
            self._islands,
            self._hosts,
            self._accounts,
            self._executions,
            self._fetches,
            self._take_from_host,
        )
        self._ended = asyncio.Event()
        self._of_clients: dict[type, Callable[..., None]] = {
            messages.AddSlice: self._add_slice,
            messages.RegisterFunction: self._register_function,
            messages.RegisterProgram: self._register_program,
            messages.Release: self._release,
            messages.Fetch: self._fetches.start,
            messages.AskStatus: self._status.answer,
            messages.Publish: self._publications.publish,
            messages.Withdraw: self._publications.withdraw,
            messages.OpenPublished: self._publications.open,
            messages.AddHost: self._membership.add,
            messages.RemoveHost: self._membership.remove,
            messages.Manage: Operations(self._islands, self._accounts, self._admission.go_on).manage,
        }

    async def serve(self, listener: socket.socket, on_ready: Callable[[], None]) -> None:
        """Start the hosts, and serve until ``stop``; calls ``on_ready`` once all hosts are there.

        Raises SubstrateError where hosts cannot be started.
        """
        loop = asyncio.get_running_loop()
        outbox = Outbox()
        server = await loop.create_server(lambda: Channel(outbox, self._greet, lambda _: None), sock=listener)
        try:
            if self._announcements is not None:
                await self._announcements.open()
            start, end = loop.create_task(self._membership.start()), loop.create_task(self._ended.wait())
            await asyncio.wait((start, end), return_when=asyncio.FIRST_COMPLETED)
            if start.done():
                start.result()
                if self._path_loads is not None:
                    self._path_loads.open()
                on_ready()
                await end
        finally:
            server.close()
            self._membership.close()
            if self._path_loads is not None:
                self._path_loads.close()
            if self._announcements is not None:
                await self._announcements.close()

    def stop(self) -> None:
        """End the server, and with it the executors."""
        self._ended.set()

    def _new_policy(self) -> Policy:
        """Return the policy of one more island."""
        if self._settings.policy == "fifo":
            return Fifo()
        if self._settings.policy == "earliest-need":
            return EarliestNeed()
        self._shares.append(ProportionalShare())
        return self._shares[-1]

    # Greetings

    def _greet(self, channel: Channel, frame: Frame) -> None:
        """Take the first frame of a connection, which must be a Hello that shows a token."""
        hello = messages.decode(frame.header) if frame.kind == Kind.MESSAGE else None
        if not isinstance(hello, messages.Hello):
            channel.refuse("expected a greeting")
        elif hello.version != messages.VERSION:
            channel.refuse(f"version: expected {messages.VERSION}, got {hello.version}")
        elif hello.role == "executor" and _is_same(hello.token, self._settings.secret):
            self._membership.greet(channel, hello)
        elif hello.role == "client" and (client := self._client_of(hello.token)) is not None:
            self._take_client(channel, client)
        else:
            channel.refuse("token: unknown")

    def _client_of(self, token: str) -> ClientSettings | None:
        return next((each for each in self._settings.clients if _is_same(token, each.token)), None)

    def _take_client(self, channel: Channel, client: ClientSettings) -> None:
        account = Account(next(self._account_numbers), self._ledgers[client.name], channel)
        for shares in self._shares:
            shares.set_weight(account.label, client.weight)
        self._accounts[account.number] = account
        channel.reader.most_bytes = MOST_BYTES
        channel.on_frame = lambda _, frame: self._take_from_client(account, frame)
        channel.on_close = lambda _: self._lose_client(account)
        channel.send(messages.Welcome(account.number))

    # Frames

    def _take_from_client(self, account: Account, frame: Frame) -> None:
        if frame.kind != Kind.MESSAGE:
            account.channel.refuse(f"clients send no frames of kind {frame.kind}")
            return
        message = messages.decode(frame.header)
        if isinstance(message, messages.Execute):
            self._admission.execute(account, message, memoryview(frame.payload))
        else:
            self._admission.take(account, message)

    def _handle(self, account: Account, message: object) -> None:
        handler = self._of_clients.get(type(message))
        if handler is None:
            account.channel.refuse(f"clients send no {type(message).__name__}")
        else:
            handler(account, message)

    def _take_from_host(self, host: int, frame: Frame) -> None:
        if frame.kind == Kind.COMPLETIONS:
            self._executions.completed(host, COMPLETION.iter_unpack(frame.header))
            return
        if frame.kind == Kind.ENQUEUED:
            for execution, node in ENQUEUED.iter_unpack(frame.header):
                self._dispatch.enqueued(execution, node)
            return
        if frame.kind == Kind.ESTIMATES:
            for number, seconds in ESTIMATE.iter_unpack(frame.header):
                self._estimate(number, seconds)
            return
        match messages.decode(frame.header):
            case messages.ShardFetched() as message:
                self._fetches.arrived(message, frame.payload)
            case messages.ShardFailed() as message:
                self._fetches.failed(message.request, message.failure)
            case messages.ShardTaken() as message:
                self._membership.departures.taken(message)
            case messages.GroupsBroken(client, generation) if client in self._accounts:
                account = self._accounts[client]
                account.groups = max(account.groups, generation + 1)
            case messages.Sized() as message:
                self._sizes.take(message)
            case messages.ConnectionEnded() | messages.LoansReturned() as message if message.host in self._hosts:
                self._hosts[message.host].channel.send(message)
            case messages.FlowSteered() as message if self._announcements is not None:
                self._announcements.take(host, message)
            case messages.RunStalled() as message if self._announcements is not None:
                self._announcements.stall(host, message)
            case messages.Usage() as message:
                self._status.take(message)

    # Messages of clients

    def _add_slice(self, account: Account, message: messages.AddSlice) -> None:
        try:
            asked = (message.device_set, message.devices, message.shape, message.island, message.constraints)
            added = self._islands.add_slice(account.label, *asked)
        except ValueError as error:
            account.channel.send(messages.Refused(message.request, str(error)))
            return
        account.place(added)
        size = len(added.placement.hosts)
        account.channel.send(messages.SliceAdded(message.request, added.number, added.placement.island, size))

    def _register_function(self, account: Account, message: messages.RegisterFunction) -> None:
        is_known = message.duration_s is not None
        seconds = _FIRST_GUESS_S if message.duration_s is None else message.duration_s
        function = NumberedFunction(message, seconds, is_known)
        account.functions[message.number] = self._functions[function.number] = function

    def _estimate(self, number: int, seconds: float) -> None:
        """Take what a host has measured of a function."""
        function = self._functions.get(number)
        if function is not None:
            function.seconds += (seconds - function.seconds) * (_LEARNING if function.is_known else 1.0)
            function.is_known = True

    def _register_program(self, account: Account, message: messages.RegisterProgram) -> None:
        """Keep a program, and let the hosts of its slices load its functions in the background."""
        missing = set(message.functions) - account.functions.keys()
        if missing:
            account.channel.refuse(f"{message.program.name}: there is no function {min(missing)}")
            return
        program = message.program
        first = len(program.arguments)
        if any(not 0 <= call.function < len(message.functions) for call in program.calls):
            account.channel.refuse(f"{program.name}: a call names a function that is not in its table")
            return
        if any(result.node < first for result in program.results) or len(set(program.results)) < len(program.results):
            account.channel.refuse(f"{program.name}: expected as results outputs of calls, each once")
            return
        functions = tuple(account.functions[each] for each in message.functions)
        if any(call.slice < 0 and functions[call.function].registered.is_collective for call in program.calls):
            account.channel.refuse(f"{program.name}: collective functions do not run on the CPUs of hosts")
            return
        account.programs[message.number] = RegisteredProgram(message.program, functions)
        for _, call in message.program.nodes():
            placement = account.slices.get(call.slice)
            for host in placement.shards_by_host if placement is not None else ():
                if host in self._hosts:
                    function = functions[call.function]
                    self._hosts[host].load_function(function.number, function.registered)

    def _execute(self, account: Account, message: messages.Execute, payload: memoryview) -> None:
        registered = account.programs.get(message.program)
        unknown = {each for each in message.arguments if each >= 0} - account.arrays.keys()
        if registered is None or unknown:
            what = f"array {min(unknown)}" if unknown else f"program {message.program}"
            account.channel.refuse(f"there is no {what}")
            return
        program = registered.program
        if len(message.arguments) != len(program.arguments) or len(message.results) != len(program.results):
            account.channel.refuse(f"{program.name}: expected a handle for each argument and result")
            return
        results = set(message.results)
        if len(results) < len(message.results) or any(
            not 0 <= each < FIRST_OPENED_HANDLE or each in account.arrays for each in results
        ):
            account.channel.refuse(f"{program.name}: expected new handles for its results")
            return
        self._executions.start(account, registered, self._islands.epoch, message, payload)

    def _release(self, account: Account, message: messages.Release) -> None:
        self._let_go(account, account.needs_no_more(message.handles))

    def _let_go(self, account: Account, handles: Sequence[int]) -> None:
        """End that a client holds arrays, and tell the hosts on which they lie."""
        by_host: dict[int, list[int]] = {}
        for handle in handles:
            held = account.let_go(handle)
            if held is not None:
                for host in held.layout.placement.shards_by_host:
                    by_host.setdefault(host, []).append(handle)
        for host, local in by_host.items():
            if host in self._hosts:
                self._hosts[host].channel.send(messages.ReleaseOn(account.number, tuple(local)))

    def _lose_client(self, account: Account) -> None:
        del self._accounts[account.number]
        account.has_ended = True
        self._admission.drop(account)
        self._publications.drop(account)
        for handle in tuple(account.arrays):
            account.let_go(handle)
        failure = Failure("LostError", f"client {account.label} ended")
        self._executions.abort_of(account, failure)
        if self._announcements is not None:
            self._announcements.drop(account)
        self._fetches.forget(account)
        self._islands.drop_client(account.label)
        for host in self._hosts.values():
            functions = {function.number for function in account.functions.values()}
            host.drop_client(account.number, failure, functions, account.subprograms)


def _is_same(token: str, known: str) -> bool:
    return hmac.compare_digest(token.encode(), known.encode())


def _announcements(controllers: Sequence[str], hosts: Mapping[int, Host]) -> "Announcements | None":
    if not controllers:
        return None
    from runtime.server.announcements import Announcements  # it brings gRPC

    return Announcements(controllers, hosts)


def _path_loads(
    announcements: "Announcements | None", hosts: Mapping[int, Host], islands: Islands
) -> "PathLoadQueries | None":
    if announcements is None:
        return None
    from runtime.server.path_loads import PathLoadQueries

    return PathLoadQueries(announcements.client, hosts, islands.set_path_loads)
