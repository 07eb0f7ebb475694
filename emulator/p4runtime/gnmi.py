"""gNMI service beside P4Runtime: ports of a switch and their states (gNMI 0.8)."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence, Sized
from contextlib import AsyncExitStack, contextmanager
from typing import Any, Protocol

import grpc
from finsy.proto import gnmi, gnmi_grpc

from emulator.interfaces import InterfaceError
from emulator.p4runtime.aborting import Aborting
from emulator.p4runtime.errors import (
    RequestError,
    failed_precondition,
    invalid_argument,
    not_found,
    resource_exhausted,
    unimplemented,
)
from emulator.p4runtime.gnmi_interfaces import Elements, changed, current, elements_of, setting, text
from emulator.ports import PortChange
from emulator.switch import EmulatedSwitch

GNMI_VERSION = "0.8.0"
MAX_SUBSCRIPTIONS_PER_SWITCH = 32
MAX_PATHS = 100
"""Paths of a request."""
_FIRST_REQUEST_S = 10.0
MODEL = gnmi.ModelData(name="openconfig-interfaces", organization="OpenConfig working group", version="3.0.0")

_Context = grpc.aio.ServicerContext[Any, Any]
_Mode = gnmi.SubscriptionList.Mode
_Changes = asyncio.Queue[tuple[int, PortChange] | None]
# Values are scalars; clients that ask for no encoding expect scalars too.
_ENCODINGS = (gnmi.Encoding.JSON, gnmi.Encoding.PROTO)


class SetPort(Protocol):
    """Enables or disables a port of a switch, as a fabric's ``set_port``."""

    def __call__(self, switch: str, port: int, *, enabled: bool) -> None:
        """Raise InterfaceError where a real interface cannot follow."""


class InterfaceService(gnmi_grpc.gNMIServicer):
    """Interfaces of switches: name, ifindex and state of each port, and whether it is enabled, which can be set.

    A request names its switch as the target of its prefix, unless only one is served. A switch without power answers
    nothing and ends its subscriptions. ``set_port`` is called while ``exclusive`` is held; without it nothing can be
    set.
    """

    def __init__(
        self, switches: Sequence[EmulatedSwitch], exclusive: asyncio.Lock, set_port: SetPort | None = None
    ) -> None:
        self._switches = {switch.name: switch for switch in switches}
        self._exclusive = exclusive
        self._set_port = set_port
        self._subscriptions = 0
        self._streams: set[_Changes] = set()

    def end(self) -> None:
        """End all subscriptions that wait for changes, since the server ends."""
        for changes in self._streams:
            changes.put_nowait(None)

    async def Capabilities(  # noqa: N802
        self, _request: gnmi.CapabilityRequest, _context: _Context
    ) -> gnmi.CapabilityResponse:
        """Return the served models and encodings."""
        return gnmi.CapabilityResponse(
            supported_models=[MODEL], supported_encodings=[gnmi.Encoding.PROTO], gNMI_version=GNMI_VERSION
        )

    async def Get(self, request: gnmi.GetRequest, context: _Context) -> gnmi.GetResponse:  # noqa: N802
        """Return the leaves below each of the paths."""
        response = gnmi.GetResponse()
        async with Aborting(context):
            switch = self._switch(request.prefix)
            _require_encoding(request.encoding)
            _require_few(request.path)
            for path in request.path:
                wanted = elements_of(request.prefix, path)
                found = [update for update in current(switch, (wanted,)) if _is_of_type(update, request.type)]
                if not found:
                    raise not_found(f"switch {switch.name} has no {text(wanted)}")
                response.notification.append(_notification(request.prefix, found))
        return response

    async def Set(self, request: gnmi.SetRequest, context: _Context) -> gnmi.SetResponse:  # noqa: N802
        """Enable and disable ports: all that the request names, or none where a part of it is refused."""
        response = gnmi.SetResponse(prefix=request.prefix)
        async with Aborting(context), self._exclusive:
            switch = self._switch(request.prefix)
            if self._set_port is None:
                raise unimplemented("gNMI: nothing can be set here")
            if request.delete or request.union_replace:
                raise unimplemented("gNMI: delete and union_replace are not supported, only update and replace")
            # The order that the specification asks for.
            parts = [(gnmi.UpdateResult.REPLACE, part) for part in request.replace]
            parts += [(gnmi.UpdateResult.UPDATE, part) for part in request.update]
            _require_few(parts)
            settings = [setting(switch, elements_of(request.prefix, part.path), part.val) for _, part in parts]
            for port, enabled in settings:
                try:
                    self._set_port(switch.name, port, enabled=enabled)
                except InterfaceError as error:
                    raise failed_precondition(f"switch {switch.name}, port {port}: {error}") from error
            for operation, part in parts:
                response.response.add(path=part.path, op=operation)
            response.timestamp = time.time_ns()
        return response

    # grpc.aio also accepts a coroutine that writes to the stream; the generated base class does not declare it.
    async def Subscribe(  # type: ignore[override]  # noqa: N802
        self, request_iterator: AsyncIterator[gnmi.SubscribeRequest], context: _Context
    ) -> None:
        """Send all leaves once, when polled, or at every change of a port."""
        async with Aborting(context), AsyncExitStack() as stack:
            stack.enter_context(self._subscribed())
            try:
                async with asyncio.timeout(_FIRST_REQUEST_S):
                    first = await anext(request_iterator, gnmi.SubscribeRequest())
            except TimeoutError:
                message = f"gNMI: nothing is subscribed to within {_FIRST_REQUEST_S:g} s"
                raise RequestError(grpc.StatusCode.DEADLINE_EXCEEDED, message) from None
            if first.WhichOneof("request") != "subscribe":
                raise invalid_argument("gNMI: the first request of a subscription must say what is subscribed to")
            subscribed = first.subscribe
            switch = self._switch(subscribed.prefix)
            _require_encoding(subscribed.encoding)
            _require_few(subscribed.subscription)
            wanted = tuple(elements_of(subscribed.prefix, item.path) for item in subscribed.subscription)
            match subscribed.mode:
                case _Mode.ONCE:
                    await _send_all(switch, subscribed, wanted, context)
                case _Mode.POLL:
                    await _send_all(switch, subscribed, wanted, context)
                    async for request in request_iterator:
                        if request.WhichOneof("request") != "poll":
                            raise invalid_argument("gNMI: a subscription that polls takes nothing but polls")
                        await _send_all(switch, subscribed, wanted, context)
                case _:
                    changes: _Changes = asyncio.Queue()
                    self._streams.add(changes)
                    stack.callback(self._streams.discard, changes)
                    await _stream(switch, subscribed, wanted, context, changes)

    @contextmanager
    def _subscribed(self) -> Iterator[None]:
        if self._subscriptions >= MAX_SUBSCRIPTIONS_PER_SWITCH * len(self._switches):
            raise resource_exhausted(f"gNMI: {self._subscriptions} subscriptions are served already")
        self._subscriptions += 1
        try:
            yield
        finally:
            self._subscriptions -= 1

    def _switch(self, prefix: gnmi.Path) -> EmulatedSwitch:
        switch = self._named(prefix)
        if not switch.power.is_on:
            raise _is_down(switch)
        return switch

    def _named(self, prefix: gnmi.Path) -> EmulatedSwitch:
        if not prefix.target:
            if len(self._switches) != 1:
                # Clients take this code for a switch without gNMI and continue.
                raise unimplemented(
                    f"gNMI: {len(self._switches)} switches are served here; a prefix must name its target"
                )
            return next(iter(self._switches.values()))
        if prefix.target not in self._switches:
            raise not_found(f"gNMI: there is no target {prefix.target!r}")
        return self._switches[prefix.target]


async def _stream(
    switch: EmulatedSwitch,
    subscribed: gnmi.SubscriptionList,
    wanted: tuple[Elements, ...],
    context: _Context,
    changes: _Changes,
) -> None:
    """Send all leaves, then what changes, until None comes: the switch is down."""
    for item in subscribed.subscription:
        if item.mode == gnmi.SubscriptionMode.SAMPLE:
            raise unimplemented("gNMI: a subscription that samples is not supported, only ON_CHANGE")
    loop = asyncio.get_running_loop()

    def note(port: int, change: PortChange) -> None:
        # A port may change in another thread, which advances the fabric's time.
        loop.call_soon_threadsafe(changes.put_nowait, (port, change))

    def note_power_lost() -> None:
        loop.call_soon_threadsafe(changes.put_nowait, None)

    stop_listening = switch.ports.listen(note), switch.power.listen(note_power_lost)
    try:
        await _send_all(switch, subscribed, wanted, context)
        while (change := await changes.get()) is not None:
            found = list(changed(switch, wanted, *change))
            if found:
                await context.write(gnmi.SubscribeResponse(update=_notification(subscribed.prefix, found)))
        raise _is_down(switch)
    finally:
        for stop in stop_listening:
            stop()


async def _send_all(
    switch: EmulatedSwitch, subscribed: gnmi.SubscriptionList, wanted: tuple[Elements, ...], context: _Context
) -> None:
    found = [] if subscribed.updates_only else list(current(switch, wanted))
    if found:
        await context.write(gnmi.SubscribeResponse(update=_notification(subscribed.prefix, found)))
    await context.write(gnmi.SubscribeResponse(sync_response=True))


def _notification(prefix: gnmi.Path, found: Sequence[gnmi.Update]) -> gnmi.Notification:
    target = gnmi.Path(target=prefix.target) if prefix.target else None
    return gnmi.Notification(timestamp=time.time_ns(), prefix=target, update=found)


def _is_down(switch: EmulatedSwitch) -> RequestError:
    return RequestError(grpc.StatusCode.UNAVAILABLE, f"switch {switch.name} is down")


def _require_encoding(encoding: gnmi.Encoding.ValueType) -> None:
    if encoding not in _ENCODINGS:
        raise unimplemented(f"gNMI: encoding {encoding} is not supported, only PROTO")


def _require_few(paths: Sized) -> None:
    if len(paths) > MAX_PATHS:
        raise resource_exhausted(f"gNMI: a request may have {MAX_PATHS} paths, not {len(paths)}")


def _is_of_type(update: gnmi.Update, wanted: gnmi.GetRequest.DataType.ValueType) -> bool:
    return wanted == gnmi.GetRequest.ALL or (update.path.elem[2].name == "config") == (wanted == gnmi.GetRequest.CONFIG)
