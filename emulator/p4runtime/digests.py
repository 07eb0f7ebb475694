"""Digests: what a program tells its controllers of single packets (P4Runtime specification, sections 9.8 and 16.3).

A controller enables a digest by its DigestEntry. The values are collected in lists, each sent to the primaries of all
roles that include it, when it is full or old enough. Values that wait for an acknowledgement are not sent again.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import grpc
from finsy.proto import p4r

from emulator.p4runtime.digest_types import Digest
from emulator.p4runtime.errors import RequestError, invalid_argument, not_found
from emulator.p4runtime.schema import Schema

LONGEST_LIST = 1 << 12
"""Values of a list whose entry sets no limit, and the most that wait for acknowledgements; more are not told."""

Send = Callable[[p4r.StreamMessageResponse], None]
_NS_PER_S = 1e9


@dataclass
class _Enabled:
    """A digest that a controller has enabled, with what waits to be sent and what to be acknowledged."""

    digest: Digest
    config: p4r.DigestEntry.Config
    waiting: list[bytes] = field(default_factory=list)
    first_ps: int = 0
    timer: asyncio.TimerHandle | None = None
    last_list: int = 0
    unacknowledged: dict[int, frozenset[bytes]] = field(default_factory=dict)

    def stop(self) -> None:
        """Forget what waits."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.waiting.clear()


class Digests:
    """The digests of one device since its pipeline was set.

    ``receivers`` gives those to whom lists of a digest, by its entity, are sent.
    """

    def __init__(self, receivers: Callable[[p4r.Entity], Iterable[Send]] = lambda _: ()) -> None:
        self._receivers = receivers
        self._enabled: dict[int, _Enabled] = {}

    # ---- entries ----------------------------------------------------------------------------------------------------

    def write(self, schema: Schema, kind: p4r.Update.Type.ValueType, message: p4r.DigestEntry) -> None:
        """Enable a digest, change how it is told, or disable it.

        Raises RequestError: INVALID_ARGUMENT for an unknown digest or a negative number, ALREADY_EXISTS, NOT_FOUND.
        """
        digest = schema.digest(message.digest_id)
        known = self._enabled.get(digest.id)
        if kind == p4r.Update.INSERT and known is not None:
            raise RequestError(grpc.StatusCode.ALREADY_EXISTS, f"digest {digest.name} is enabled")
        if kind != p4r.Update.INSERT and known is None:
            raise not_found(f"digest {digest.name} is not enabled")
        if kind == p4r.Update.DELETE:
            self._enabled.pop(digest.id).stop()
            return
        config = message.config
        if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
            raise invalid_argument(f"digest {digest.name}: times and sizes cannot be negative")
        if known is None:
            self._enabled[digest.id] = _Enabled(digest, config)
        else:
            self._flush(known)
            known.config = config

    def read(self, schema: Schema, request: p4r.DigestEntry) -> Iterator[p4r.DigestEntry]:
        """Return the entries that a request selects; id 0 is a wildcard. Raises RequestError, INVALID_ARGUMENT."""
        if request.digest_id:
            schema.digest(request.digest_id)
        for number, enabled in self._enabled.items():
            if request.digest_id in (0, number):
                yield p4r.DigestEntry(digest_id=number, config=enabled.config)

    # ---- values -----------------------------------------------------------------------------------------------------

    def learn(self, number: int, octets: bytes, time_ps: int) -> None:
        """Take the values of a list of the program; call it in the event loop's thread."""
        found = [enabled for enabled in self._enabled.values() if enabled.digest.number == number]
        for enabled in found:
            if octets in enabled.waiting or any(octets in sent for sent in enabled.unacknowledged.values()):
                continue
            if not enabled.waiting:
                enabled.first_ps = time_ps
            enabled.waiting.append(octets)
            config = enabled.config
            if len(enabled.waiting) >= (config.max_list_size or LONGEST_LIST) or not config.max_timeout_ns:
                self._flush(enabled)
            elif enabled.timer is None:
                wait_s = config.max_timeout_ns / _NS_PER_S
                enabled.timer = asyncio.get_running_loop().call_later(wait_s, self._flush, enabled)

    def acknowledge(self, message: p4r.DigestListAck) -> None:
        """Let the values of a list be told again. Raises RequestError, NOT_FOUND, for a list that waits for nothing."""
        enabled = self._enabled.get(message.digest_id)
        if enabled is None or not 0 < message.list_id <= enabled.last_list:
            raise not_found(f"there is no list {message.list_id} of the digest with id {message.digest_id:#010x}")
        enabled.unacknowledged.pop(message.list_id, None)

    def rename(self, schema: Schema) -> None:
        """Go on under the ids of another P4Info, which has the same digests."""
        by_name = {digest.name: digest for digest in schema.digests.values()}
        for enabled in self._enabled.values():
            enabled.digest = by_name[enabled.digest.name]
        self._enabled = {enabled.digest.id: enabled for enabled in self._enabled.values()}

    def end(self) -> None:
        """Forget everything: the pipeline is another one, or the switch is down."""
        for enabled in self._enabled.values():
            enabled.stop()
        self._enabled.clear()

    def _flush(self, enabled: _Enabled) -> None:
        """Send what waits."""
        values = tuple(enabled.waiting)
        enabled.stop()
        if not values:
            return
        enabled.last_list += 1
        list_id = enabled.last_list
        ack_timeout_ns = enabled.config.ack_timeout_ns
        if ack_timeout_ns and sum(map(len, enabled.unacknowledged.values())) + len(values) <= LONGEST_LIST:
            enabled.unacknowledged[list_id] = frozenset(values)
            forget = enabled.unacknowledged.pop
            asyncio.get_running_loop().call_later(ack_timeout_ns / _NS_PER_S, forget, list_id, None)
        message = p4r.DigestList(digest_id=enabled.digest.id, list_id=list_id, timestamp=enabled.first_ps // 1000)
        message.data.extend(enabled.digest.data(octets) for octets in values)
        entity = p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=enabled.digest.id))
        for send in self._receivers(entity):
            send(p4r.StreamMessageResponse(digest=message))
