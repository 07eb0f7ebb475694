"""Flows that are to send from another port than they do.

A connection from that port is opened beside the one that a flow has, which goes on meanwhile: the new path may be dead.
Once it is open the flow goes on there. It has at most one connection besides that one: it moves no further before what
it sent on the connection before has arrived.
"""

import errno
import os
import socket
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from runtime.executor.dialling import Dialling
from runtime.executor.flows import Flow, Flows
from runtime.executor.loop import Loop
from runtime.messages import Place

RETRIED_S = 1.0
"""After so long a port may be free that was not, or a path may work again."""
OPENED_WITHIN_S = 5.0
"""A path on which no connection is open by then counts as dead for now."""


class _Opening(NamedTuple):
    """A connection that is being opened from a port."""

    sock: socket.socket
    port: int


class Steering:
    """Opens connections of flows from their ports. ``move`` lets a flow go on with a socket that is connected."""

    def __init__(
        self,
        loop: Loop,
        dialling: Dialling,
        flows: Flows,
        places: Mapping[int, Place],
        move: Callable[[Flow, socket.socket], None],
    ) -> None:
        self._loop = loop
        self._dialling = dialling
        self._flows = flows
        self._places = places
        self._move = move
        self._opening: dict[Flow, _Opening] = {}

    def steer(self, flow: Flow) -> None:
        """Let what a flow sends from now on go from its port, as soon as there is a connection."""
        opening = self._opening.get(flow)
        if opening is not None and opening.port == flow.source_port:
            return
        self.forget(flow)
        if flow.is_steered:
            self._dialling.note(flow, "")
        elif flow.retiring is not None and not flow.retiring.is_closed:
            self.look_after(flow)
        elif flow.host in self._places:
            self._open(flow)

    def look_after(self, flow: Flow) -> None:
        """Try again later where a flow does not send from its port."""
        if not (flow.is_steered or flow.is_looked_after):
            flow.is_looked_after = True
            self._loop.at(time.perf_counter() + RETRIED_S, partial(self._look_again, flow))

    def take(self, flow: Flow) -> socket.socket | None:
        """Return the socket that is being opened for a flow, which is the caller's then; None where there is none."""
        opening = self._opening.pop(flow, None)
        if opening is None:
            return None
        self._loop.forget(opening.sock)
        return opening.sock

    def forget(self, flow: Flow) -> None:
        """Close what is being opened for a flow."""
        sock = self.take(flow)
        if sock is not None:
            sock.close()

    def _open(self, flow: Flow) -> None:
        try:
            sock = self._dialling.dial_from_port(flow, self._places[flow.host])
        except OSError:  # the connection that there is will tell
            sock = None
        if sock is None:
            self.look_after(flow)
            return
        self._opening[flow] = _Opening(sock, flow.source_port)
        finish = partial(self._finish, flow, sock)
        self._loop.watch(sock, finish, finish)
        self._loop.at(time.perf_counter() + OPENED_WITHIN_S, partial(self._give_up, flow, sock))

    def _finish(self, flow: Flow, sock: socket.socket) -> None:
        """Let a flow go on with a socket that is connected, or failed to."""
        error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            self._fail(flow, error)
        else:
            self.take(flow)
            self._move(flow, sock)

    def _give_up(self, flow: Flow, sock: socket.socket) -> None:
        opening = self._opening.get(flow)
        if opening is not None and opening.sock is sock:
            self._fail(flow, errno.ETIMEDOUT)

    def _fail(self, flow: Flow, error: int) -> None:
        self.forget(flow)
        self._dialling.note(flow, os.strerror(error))
        self.look_after(flow)

    def _look_again(self, flow: Flow) -> None:
        flow.is_looked_after = False
        if self._flows.find(flow.number) is flow:
            self.steer(flow)
