"""The executor's process: ``python -m runtime.executor``, started by a substrate.

Its settings come as one line of JSON on stdin, so that the secret of the cluster is in no list of processes.
"""

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from runtime import messages
from runtime.addresses import dialled
from runtime.executor.computations import Array, Computation, Done, LoadedFunction
from runtime.executor.connection import Connection
from runtime.executor.copies import Copies
from runtime.executor.dataflow import Completion, Dataflow
from runtime.executor.devices import Device
from runtime.executor.groups import GroupKey, Groups, NewStore, ShardGroup, file_store
from runtime.executor.loop import Loop
from runtime.executor.memory import HostMemory
from runtime.executor.moves import Moves, PieceRouter
from runtime.executor.peers import Peers, bytes_of
from runtime.executor.reserved import Held
from runtime.executor.stalls import Stalls
from runtime.executor.store import Found, HostStore
from runtime.executor.trimming import Trimming
from runtime.frames import COMPLETION, ENQUEUED, ESTIMATE, GRANT, MOST_BYTES, PIECE, Frame, Kind
from runtime.lowering.subprograms import Send
from runtime.messages import Failure
from runtime.store.buffers import HOST
from runtime.substrates.interface import HostSettings
from runtime.transport.arena import Arena
from runtime.transport.arrays import ArenaArrays

SWITCH_S = 1e-4
"""The loop and the threads of devices hand work to each other; Python's default of 5 ms is too long a wait."""
_REPORT_S = 1e-3
"""How long reports to the server wait for others. Schedulers grant some milliseconds ahead."""
_SOON_S = 2e-4
"""How long after the last report one may go for which a client may wait."""


class Executor:
    """A host: devices, the store, and connections to the server and to other hosts."""

    def __init__(self, settings: HostSettings, new_store: NewStore = file_store) -> None:
        self._settings = settings
        self._loop = Loop()
        budgets_bytes = dict.fromkeys(range(settings.devices), settings.device_memory_bytes)
        self._store = HostStore(HostMemory({HOST: settings.host_memory_bytes, **budgets_bytes}))
        self._dataflow = Dataflow(settings.host, self._store, self, settings.device_memory_bytes)
        self._devices = [Device(number, self._loop, self._end_computation) for number in range(settings.devices)]
        self._cpus = Device(HOST, self._loop, self._end_computation)
        self._completions: list[Completion] = []
        self._news: dict[int, float] = {}
        self._reported_s = -math.inf
        self._report_s = math.inf
        self._prepared_s = 0.0
        self._arrays = ArenaArrays(Arena(_arena_bytes(settings)))
        self._trimming = Trimming(self._loop, self._arrays.arena)
        self._copies = Copies(self._loop)
        self._moves = Moves(self._store, self._arrays, self._copies, self._tell_taken)
        router = PieceRouter(self._dataflow.arrivals, self._moves)
        self._peers = Peers(self._loop, settings, self._arrays, self._copies, router, self._tell)
        self._stalls = Stalls(self._loop, self._dataflow, self._tell)
        places = (self._peers.place, self._peers.places, self._peers.network_address)
        self._groups = Groups(settings.folder, new_store, *places)
        self._server = Connection(self._loop, dialled(settings.server), self._take, self._end)
        self._server.is_trusted = True
        self._server.reader.most_bytes = MOST_BYTES
        self._server.send(Kind.MESSAGE, messages.encode(self._peers.greeting()))
        self._handlers: dict[type, Callable[..., None]] = {
            messages.Peers: lambda message: self._peers.take_places(message.places),
            messages.ConnectionEnded: lambda message: self._peers.take_end(message),
            messages.LoansReturned: lambda message: self._peers.take_returned(message),
            messages.LoadFunction: self._load_function,
            messages.LoadSubprogram: self._load_subprogram,
            messages.Abort: self._abort,
            messages.ReleaseOn: lambda message: self._store.release(message.client, message.handles),
            messages.DropClient: self._drop_client,
            messages.FetchShard: self._fetch,
            messages.ShareOn: self._store.share,
            messages.TakeShard: self._moves.take,
            messages.GiveShard: lambda message: self._moves.give(message, self._give),
            messages.ForgetShards: self._moves.forget,
            messages.OpenFlows: self._open_flows,
            messages.CloseFlows: self._close_flows,
            messages.RankFlows: lambda message: self._peers.rank_flows(message.flows),
            messages.AskUsage: self._report_usage,
        }

    def run(self) -> None:
        """Run until the server is gone."""
        self._loop.run()

    def _tell(self, message: object) -> None:
        self._server.send(Kind.MESSAGE, messages.encode(message))

    def _end(self, server: Connection) -> None:
        if server.is_refused:
            print(f"host {self._settings.host} refused a frame of the server: {server.cause}", file=sys.stderr)
        self._loop.stop()

    # What the dataflow needs

    def send_piece(self, host: int, execution: int, send: Send, data: Array, flow: int | None = None) -> None:
        """Send a piece to another host, on a flow if there is one."""
        if flow is None:
            self._peers.send_piece(host, execution, send, data)
        else:
            self._peers.send_piece(host, execution, send, data, flow, self._dataflow.arrivals.made_s)

    def send_failure(self, host: int, execution: int, send: Send, failure: Failure) -> None:
        """Tell another host that a piece will never come."""
        self._peers.send_failure(host, execution, send, failure)

    def empty(self, shape: Sequence[int], dtype: str) -> Array:
        """Return memory in which an input is put together."""
        return self._arrays.empty(shape, dtype)

    def copy(self, to: Array, source: Array, on_done: Callable[[], None]) -> None:
        """Copy an array to another one, and call back."""
        self._copies.copy(to, source, on_done)

    def prepare(self, execution: int, node: int) -> None:
        """Enqueue the local shards of a granted node when the host has prepared them, which it does one by one."""
        if self._settings.preparation_s:
            self._prepared_s = max(self._prepared_s, time.perf_counter()) + self._settings.preparation_s
            self._loop.at(self._prepared_s, partial(self._enqueue, execution, node))
        else:
            self._enqueue(execution, node)

    def _enqueue(self, execution: int, node: int) -> None:
        self._dataflow.enqueue(execution, node)
        if self._settings.reports_enqueued:
            self._server.send(Kind.ENQUEUED, ENQUEUED.pack(execution, node))

    def wait(self, held: Held) -> None:
        """Take note that what was granted waits for memory: the server may have announced what it sends."""
        if self._settings.reports_stalls:
            self._stalls.watch(held)

    def go_on(self, execution: int) -> None:
        """Take note that what was granted has memory at once: its run is not stalled."""
        self._stalls.go_on(execution)

    def group(self, key: GroupKey, shard: int) -> ShardGroup:
        """Return the group for a shard of a collective call."""
        return self._groups.group(key, shard)

    def enqueue(self, computation: Computation) -> None:
        """Put a granted computation into the queue of its device."""
        self._device(computation.device).enqueue(computation)

    def advance(self, device: int) -> None:
        """Let a device start what has become ready."""
        self._device(device).advance()

    def _device(self, number: int) -> Device:
        return self._cpus if number == HOST else self._devices[number]

    def has_more(self, device: int) -> bool:
        """Return whether a device has more to run."""
        return self._device(device).queued > 0

    def completed(self, ended: Completion, is_awaited: bool) -> None:
        """Report a stretch that has ended here. Reports go together, those for which a client may wait soon.

        What functions were found to take goes with them: the server works between two hops of a program otherwise.
        """
        self._completions.append(ended)
        now_s = time.perf_counter()
        due_s = self._reported_s + _SOON_S if is_awaited else now_s + _REPORT_S
        if due_s <= now_s:
            self._report()
        elif due_s < self._report_s:
            self._report_s = due_s
            self._loop.at(due_s, self._report)

    def sized(self, told: messages.Sized) -> None:
        """Report how many rows a shard has of which no bound was known."""
        self._server.send(Kind.MESSAGE, messages.encode(told))

    def _report(self) -> None:
        self._report_s = math.inf
        if not self._completions:
            return
        now_s = self._reported_s = time.perf_counter()
        if self._news:
            self._server.send(Kind.ESTIMATES, b"".join([ESTIMATE.pack(*each) for each in self._news.items()]))
            self._news.clear()
        packed = [COMPLETION.pack(*ended[:-1], now_s - ended.end_s) for ended in self._completions]
        self._server.send(Kind.COMPLETIONS, b"".join(packed))
        self._completions.clear()

    def _end_computation(self, computation: Computation, done: Done, end_s: float) -> None:
        function = computation.function.function
        if function.is_news:
            function.is_news = False
            self._news[function.number] = function.seconds
        if computation.group is not None and done.failure is not None:
            self._break(computation.group, done.failure.message)
        self._dataflow.end_computation(computation, done, end_s)

    def _break(self, group: ShardGroup, cause: str) -> None:
        group.break_(cause)
        broken = messages.GroupsBroken(group.key.client, group.key.generation)
        self._server.send(Kind.MESSAGE, messages.encode(broken))

    # Messages of the server

    def _take(self, _: Connection, frame: Frame) -> None:
        kind = frame.kind
        if kind == Kind.PIECE:
            execution, edge, destination, source = PIECE.unpack(frame.header)
            self._dataflow.arrivals.receive(execution, edge, destination, source, frame.payload)
        elif kind == Kind.GRANTS:
            for execution, first, last in GRANT.iter_unpack(frame.header):
                self._dataflow.grant(execution, first, last)
        else:
            message = messages.decode(frame.header)
            if isinstance(message, messages.Run):
                self._dataflow.run(message)
            else:
                self._handlers[type(message)](message)

    def _load_function(self, message: messages.LoadFunction) -> None:
        self._dataflow.add_function(message.number, LoadedFunction(message.function, message.number, self._arrays.used))

    def _load_subprogram(self, message: messages.LoadSubprogram) -> None:
        self._dataflow.add_subprogram(message.number, message.subprogram, message.functions)

    def _open_flows(self, message: messages.OpenFlows) -> None:
        self._dataflow.add_flows(message.subprogram, {(each.edge, each.host): each.number for each in message.flows})
        self._peers.open_flows(message.flows)

    def _close_flows(self, message: messages.CloseFlows) -> None:
        self._dataflow.drop_flows(message.subprogram, message.flows)
        self._peers.close_flows(message.flows)

    def _abort(self, message: messages.Abort) -> None:
        self._drop_dead(self._dataflow.abort(message.execution, message.failure))

    def _drop_client(self, message: messages.DropClient) -> None:
        ahead = self._dataflow.drop_client(message.client, message.failure)
        self._dataflow.unload(message.functions, message.subprograms)
        self._moves.drop_client(message.client)
        self._store.drop_client(message.client, message.failure)
        self._drop_dead(ahead)
        self._groups.forget(message.client)

    def _drop_dead(self, ahead: Sequence[Computation]) -> None:
        """Drop what was aborted. Let nobody wait for it, also not for shards ``ahead`` of their devices.

        A shard that a thread runs may itself wait for one whose host is gone, and nobody else may tell it.
        """
        dead = list(ahead)
        for device in (*self._devices, self._cpus):
            dropped = device.drop(self._is_dead)
            for each in dropped:
                self._dataflow.forget(each)
            dead += [*dropped, *device.in_thread(self._is_dead)]
        for group in {each.group for each in dead if each.waits_for_shards}:
            if group is not None:
                self._break(group, "the execution was aborted")

    def _is_dead(self, computation: Computation) -> bool:
        return not self._dataflow.is_running(computation.execution)

    def _give(self, execution: int, send: Send, found: Found) -> None:
        if isinstance(found, Failure):
            self._peers.send_failure(send.host, execution, send, found)
        else:
            self._peers.send_piece(send.host, execution, send, found)

    def _tell_taken(self, move: int, is_there: bool) -> None:
        self._server.send(Kind.MESSAGE, messages.encode(messages.ShardTaken(move, is_there)))

    def _fetch(self, message: messages.FetchShard) -> None:
        give = partial(self._answer_fetch, message)
        self._store.when_there(message.client, message.handle, message.shard, give)

    def _answer_fetch(self, message: messages.FetchShard, found: Found) -> None:
        if isinstance(found, Failure):
            self._server.send(Kind.MESSAGE, messages.encode(messages.ShardFailed(message.request, found)))
            return
        data = bytes_of(np.asarray(found, order="C")) if message.data else b""
        self._server.send(Kind.MESSAGE, messages.encode(messages.ShardFetched(message.request, message.shard)), data)

    def _report_usage(self, message: messages.AskUsage) -> None:
        usage = {
            "pid": os.getpid(),
            "handles": self._store.handles,
            "size_bytes": self._store.size_bytes,
            "device_bytes": [self._store.memory.used_bytes[device.number] for device in self._devices],
            "spilled_bytes": self._store.memory.used_bytes[HOST],
            "stalled": self._store.memory.stalled,
            "shared_bytes": self._arrays.arena.used_bytes,
            "resident_bytes": self._arrays.arena.segment.resident_bytes,
            "lent": self._peers.lent,
            "executions": self._dataflow.running,
            "loaded": self._dataflow.loaded,
            "waiting_pieces": self._dataflow.arrivals.waiting,
            "queued": [device.queued for device in self._devices],
            "busy_s": [device.busy_s for device in self._devices],
            "ran": [ran for device in (*self._devices, self._cpus) for ran in device.ran] if message.trace else [],
            "flows": self._peers.flows.shown(),
            "sent": list(self._peers.flows.sent) if message.trace else [],
            "arrived": list(self._peers.flows.arrived) if message.trace else [],
        }
        self._server.send(Kind.MESSAGE, messages.encode(messages.Usage(message.request, usage)))


def _arena_bytes(settings: HostSettings) -> int:
    """Return the size of the arena: what all devices may hold, as far as the machine has as much, in whole pages."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    pages = min(settings.devices * settings.device_memory_bytes // page_bytes, os.sysconf("SC_PHYS_PAGES"))
    return max(1, pages) * page_bytes
