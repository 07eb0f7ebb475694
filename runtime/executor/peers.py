"""The other hosts: connections to them, on which pieces of arrays travel.

A host sends on connections that it has opened, and receives on those that others have. On one machine it *lends* what
is large: the array lies in its arena, which the other one has mapped, and is read there. When nobody reads it any more
it is *returned*. What is small, what finds no room in the arena or cannot be read there, and everything over TCP is
sent; a large piece is received in the place where it is needed.

When a connection ends between hosts that live, the one that opened it says so to the other one, by way of the server:
what depends on pieces that were lost fails, and what is lent stays so until it is returned. The next piece opens a new
connection.

Over a network, what flows of a program carry goes on connections of these flows (``flows``). Where a flow is to send
from another port it gets another connection, and goes on there once that is open (``steering``).
"""

import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count

import numpy as np

from runtime import messages
from runtime.addresses import this_machine
from runtime.executor.connection import Connection
from runtime.executor.copies import Copies
from runtime.executor.dialling import Dialling
from runtime.executor.flows import Flow, Flows
from runtime.executor.incoming import Incoming, Receiver
from runtime.executor.listening import Listening
from runtime.executor.loop import Loop
from runtime.executor.outgoing import Outgoing
from runtime.executor.steering import Steering
from runtime.frames import FrameError, Kind, prefix
from runtime.lowering.subprograms import Send
from runtime.messages import Failure, Place
from runtime.substrates.interface import HostSettings
from runtime.transport.arrays import LEAST_BYTES, ArenaArrays, Array
from runtime.transport.deliveries import Name

_KEPT = 1024
"""So many connections of a host are remembered that have ended before they came; a later one has long been refused."""


class Peers:
    """The other hosts of a runtime. ``tell`` sends a message to the server, also one for another host."""

    def __init__(
        self,
        loop: Loop,
        settings: HostSettings,
        arrays: ArenaArrays,
        copies: Copies,
        receiver: Receiver,
        tell: Callable[[object], None],
    ) -> None:
        self._loop = loop
        self._settings = settings
        self._arrays = arrays
        self._copies = copies
        self._receiver = receiver
        self._tell = tell
        self.places: dict[int, Place] = {}
        self._numbers = count()
        self._outgoing: dict[tuple[int, int | None], Outgoing] = {}
        """Connections to other hosts, by host and the flow that each is for."""
        self._ended: dict[int, Outgoing] = {}
        """Connections that have ended, by number, as long as the other host reads what was lent on them."""
        self._incoming: dict[tuple[int, int], Incoming] = {}
        self._over: dict[int, deque[int]] = {}
        """Connections of each host of which that host said that they have ended, and which have not come here."""
        self.flows = Flows()
        listening = Listening(loop, settings.secret, self._take_greeting)
        self.network_address = listening.listen(settings.network_address) if settings.network_address else ""
        """Where it listens on a network, if it is on one."""
        address = listening.listen(settings.address)
        if settings.local_address:
            listening.listen(settings.local_address)
            machine = this_machine()
        else:
            machine = settings.folder if address.startswith("unix:") else ""
        self.place = Place(address, machine, settings.local_address)
        """Where this host listens; the port is the one that it got."""
        self._dialling = Dialling(self.place, settings.network_address, tell)
        self._steering = Steering(loop, self._dialling, self.flows, self.places, self._move)

    @property
    def lent(self) -> int:
        """Pieces that other hosts read where they lie."""
        return sum(len(each.lent) for each in (*self._outgoing.values(), *self._ended.values()))

    def greeting(self, connection: int = 0, flow: int = -1) -> messages.Hello:
        """Return what this host says first, on this connection to another one or to the server."""
        settings = self._settings
        own = (str(settings.host), settings.secret, self.place)
        return messages.Hello(messages.VERSION, "executor", *own, connection, self.network_address, flow)

    def take_places(self, places: Mapping[int, Place]) -> None:
        """Take note of where all hosts listen. Those that are not named are gone, and read nothing any more."""
        gone = self.places.keys() - places.keys()
        self.places.clear()
        self.places.update(places)
        for ended in [each for each in self._ended.values() if each.host not in places]:
            self._ended.pop(ended.number).lent.clear()
        self._incoming = {key: each for key, each in self._incoming.items() if each.sender not in gone}
        self._over = {sender: numbers for sender, numbers in self._over.items() if sender not in gone}

    def open_flows(self, flows: Sequence[messages.FlowToOpen]) -> None:
        """Give flows connections of their own."""
        for each in flows:
            self.flows.open(each.number, each.host)
            self._peer(each.host, each.number)

    def close_flows(self, numbers: Sequence[int]) -> None:
        """End flows on which nothing is sent any more."""
        for number in numbers:
            flow = self.flows.close(number)
            if flow is not None:
                self._steering.forget(flow)
                peer = self._outgoing.pop((flow.host, number), None)
                if peer is not None:
                    peer.retire()

    def rank_flows(self, ranks: Sequence[messages.FlowRank]) -> None:
        """Send on flows as the server says."""
        for each in ranks:
            flow = self.flows.rank(each)
            if flow is not None:
                peer = self._outgoing.get((flow.host, each.number))
                for connection in (flow.retiring, None if peer is None else peer.connection):
                    if connection is not None:
                        flow.mark(connection)
                self._steering.steer(flow)

    def send_piece(
        self, host: int, execution: int, send: Send, data: Array, flow: int | None = None, made_s: float = 0.0
    ) -> None:
        """Send a piece, which does not change any more; on a flow, if there is one, for which it was made then."""
        peer = self._peer(host, flow)
        if peer is None:
            return
        name = _name(execution, send)
        if flow is not None:
            self.flows.note_sent(flow, name, data.nbytes, made_s)
        if data.flags.c_contiguous:
            offset_bytes = self._offset_bytes(peer, data)
            if offset_bytes is not None:
                peer.lend(name, data, offset_bytes)
                return
        place = self._place(peer, data)
        if place is data:
            peer.send(Kind.PIECE, name, bytes_of(data))
        else:
            self._copies.copy(place, data, partial(self._pass, host, flow, name, place))

    def send_failure(self, host: int, execution: int, send: Send, failure: Failure) -> None:
        """Say that a piece will never come."""
        peer = self._peer(host)
        if peer is not None:
            peer.send(Kind.FAILED_PIECE, _name(execution, send), messages.encode(failure))

    def take_end(self, message: messages.ConnectionEnded) -> None:
        """Take another host's word that its connection to this one has ended."""
        key = message.sender, message.connection
        incoming = self._incoming.pop(key, None)
        if incoming is not None:
            incoming.finish(message.first, message.pieces, message.loans, message.cause)
            return
        self._over.setdefault(message.sender, deque(maxlen=_KEPT)).append(message.connection)
        if message.loans:
            self._tell(messages.LoansReturned(message.sender, message.connection, message.loans))
        for name in dict.fromkeys(message.pieces):
            self._receiver.lose(*name, message.cause)

    def take_returned(self, message: messages.LoansReturned) -> None:
        """Take back what was lent on a connection that has ended."""
        ended = self._ended.get(message.connection)
        if ended is not None:
            for loan in message.loans:
                ended.lent.pop(loan, None)
            if not ended.lent:
                del self._ended[message.connection]

    def _place(self, peer: Outgoing, data: Array) -> Array:
        """Return where data that cannot be lent as they lie are to be: in the arena, or at least in a row."""
        if data.nbytes >= LEAST_BYTES and peer.can_lend:
            room = self._arrays.room(data.shape, data.dtype)
            if room is not None:
                return room
        return data if data.flags.c_contiguous else np.empty(data.shape, data.dtype)

    def _pass(self, host: int, flow: int | None, name: Name, data: Array) -> None:
        """Lend or send an array whose elements lie in a row."""
        peer = self._peer(host, flow)
        if peer is None:
            return
        offset_bytes = self._offset_bytes(peer, data)
        if offset_bytes is None:
            peer.send(Kind.PIECE, name, bytes_of(data))
        else:
            peer.lend(name, data, offset_bytes)

    def _offset_bytes(self, peer: Outgoing, data: Array) -> int | None:
        """Return where in the arena an array lies that can be lent; None for others."""
        return self._arrays.offset_bytes(data) if data.nbytes >= LEAST_BYTES and peer.can_lend else None

    def _peer(self, host: int, number: int | None = None) -> Outgoing | None:
        """Return the connection to a host, of a flow if that is known, and a new one where there is none.

        None if the host is gone.
        """
        flow = None if number is None else self.flows.find(number)
        key = host, None if flow is None else number
        peer = self._outgoing.get(key)
        if peer is None and host in self.places:
            peer = self._outgoing[key] = self._dialled(host, flow)
        return peer

    def _dialled(self, host: int, flow: Flow | None) -> Outgoing:
        place, cause = self.places[host], ""
        try:
            if flow is None:
                sock = self._dialling.dial(place)
            else:
                sock = self._steering.take(flow) or self._dialling.dial_for(flow, place)
        except OSError as error:
            cause = f"it cannot be opened: {error.strerror or error}"
            sock, other = socket.socketpair()
            other.close()
        return self._greeted(host, flow, sock, cause)

    def _greeted(self, host: int, flow: Flow | None, sock: socket.socket, cause: str = "") -> Outgoing:
        """Return a connection on which this host has greeted; one that could not be opened ends soon, with a cause."""
        number = next(self._numbers)
        greeting = messages.encode(self.greeting(number, -1 if flow is None else flow.number))
        can_lend = not cause and sock.family == socket.AF_UNIX and self._greet_with_arena(sock, greeting)
        peer = Outgoing(self._loop, sock, (host, None if flow is None else flow.number), number, can_lend, self._end)
        if cause:
            self._loop.post(partial(peer.connection.close, cause))
        elif not can_lend:
            if flow is not None and not peer.connection.is_local:
                flow.take(peer.connection)
                if flow.is_steered:
                    self._dialling.note(flow, "")
                self._steering.look_after(flow)
            peer.connection.send(Kind.MESSAGE, greeting)
        return peer

    def _move(self, flow: Flow, sock: socket.socket) -> None:
        """Let a flow go on with another socket, which is connected."""
        key = (flow.host, flow.number)
        before = self._outgoing.get(key)
        self._outgoing[key] = self._greeted(flow.host, flow, sock)
        if before is not None:
            before.retire()
            flow.retiring = before.connection

    def _greet_with_arena(self, sock: socket.socket, greeting: bytes) -> bool:
        """Send the first frame, and with it the arena; return whether there is one to send."""
        try:
            socket.send_fds(sock, (prefix(Kind.MESSAGE, greeting, 0),), (self._arrays.arena.segment.descriptor,))
        except (OSError, ValueError):
            return False
        return True

    def _end(self, ended: Outgoing) -> None:
        """Tell the other host that a connection to it has ended. If that is gone, so is what it was lent."""
        if self._outgoing.get(ended.key) is ended:
            del self._outgoing[ended.key]
        if ended.host not in self.places:
            ended.lent.clear()
            return
        if ended.lent:
            self._ended[ended.number] = ended
        own, connection = self._settings.host, ended.connection
        self._tell(
            messages.ConnectionEnded(
                ended.host,
                own,
                ended.number,
                ended.sent.first,
                tuple(ended.sent.names),
                tuple(ended.lent),
                f"the connection from host {own} to host {ended.host} ended: {connection.cause}",
            )
        )

    def _take_greeting(self, connection: Connection, hello: messages.Hello) -> None:
        """Receive on a connection of a host that has greeted."""
        sender = int(hello.name)
        if hello.connection in self._over.get(sender, ()):
            raise FrameError(f"connection {hello.connection} of host {sender} has ended already")
        self._incoming[sender, hello.connection] = Incoming(
            self._loop,
            connection,
            (sender, self._settings.host),
            hello.connection,
            self._arrays,
            self._receiver,
            self._tell,
            None if hello.flow < 0 else self.flows.note_arrived,
        )


def _name(execution: int, send: Send) -> Name:
    return execution, send.edge, send.piece.destination, send.piece.source


def bytes_of(array: Array) -> bytes | memoryview:
    """Return the memory of an array whose elements lie in a row."""
    return array.data.cast("B") if array.nbytes else b""
