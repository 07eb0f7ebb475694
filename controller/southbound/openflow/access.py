"""Read and write one connected switch that speaks OpenFlow.

Which flow entries are ours is told by their cookies, and of groups by the ranges of their ids. What others have written
stays, but where it has the place of an entry of ours.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from controller.background import Worker
from controller.southbound.fencing import Grant
from controller.southbound.openflow import groups
from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.channel_errors import AwayError, RefusedError, StaleError
from controller.southbound.openflow.entries import Group
from controller.southbound.openflow.entry_words import entry_words, kind_words
from controller.southbound.openflow.flow_encoder import (
    OWNER_MASK,
    FlowCommand,
    delete_held,
    encode_flow_mod,
    encode_own,
    owner_cookie,
)
from controller.southbound.openflow.flow_stats import HeldFlow, decode_flow_stats, flows_request
from controller.southbound.openflow.group_messages import (
    GroupCommand,
    HeldGroup,
    as_described,
    decode_group_descriptions,
    encode_group_mod,
    group_descriptions_request,
)
from controller.southbound.openflow.group_statistics import decode_group_statistics, group_statistics_request
from controller.southbound.openflow.measuring_entries import PortCounter, port_counters
from controller.southbound.openflow.messages import MalformedError
from controller.southbound.openflow.port_messages import (
    PortStatistics,
    decode_port_statistics,
    port_statistics_request,
)
from controller.southbound.openflow.states import State, SwitchEntry, Update, key_of, place_of, unreadable_group
from controller.southbound.states import EntryKey, EntryKind, UpdateKind
from controller.southbound.switch_access import SwitchAwayError, SwitchRefusalError

_ResultT = TypeVar("_ResultT")

_JOB_BIT = 1 << 32
_MEASURING_BIT = 1 << 33
"""Bits of the owner's: the entries of jobs, and those that measure one, have one, so that they can be read alone."""
_BITS = _JOB_BIT | _MEASURING_BIT
_BIT_OF_KIND = {EntryKind.JOB: _JOB_BIT, EntryKind.MEASURING: _MEASURING_BIT}
_OWNER = owner_cookie("trainyard") & ~_BITS
_ANY_OF_OURS = OWNER_MASK & ~_BITS

_MAX_ENTRIES = 200_000
"""A switch that holds more of ours is not believed. Our tables hold 20,000 flows and some thousand routes."""
_ITEMS_PER_ENTRY = 5
_BYTES_PER_ENTRY = 50
"""Of groups and ports in an answer, at least."""
_SLICE = 200
"""Entries that are worked on at once, between which the thread does what others want of it."""

_GROUP_COMMANDS = {
    UpdateKind.INSERT: GroupCommand.ADD,
    UpdateKind.MODIFY: GroupCommand.MODIFY,
    UpdateKind.DELETE: GroupCommand.DELETE,
}


class OpenFlowAccess:
    """Access to a switch; see Access.

    With a ``grant`` it writes only while that lasts. ``on_stale`` is called with the reason where the switch refuses
    since another controller is its master. ``worker`` encodes and decodes.
    """

    def __init__(
        self, channel: OpenFlowChannel, grant: Grant | None, worker: Worker, on_stale: Callable[[str], None]
    ) -> None:
        self._channel = channel
        self._grant = grant
        self._worker = worker
        self._on_stale = on_stale

    async def read(self, expected: State) -> dict[EntryKey, SwitchEntry]:
        """Read the controller's own entries; see Access."""
        version = self._channel.version
        with _own_errors():
            await self._channel.settle()  # else what a cancelled write has sent may come after the answer
        described = await self._request(group_descriptions_request(version))
        replies = await self._request(flows_request(_OWNER, _ANY_OF_OURS, version))
        try:
            held_groups = await self._run(
                partial(decode_group_descriptions, described, version), sum(map(len, described)) // _BYTES_PER_ENTRY
            )
            found = await self._run(partial(self._read_groups, held_groups, expected), len(held_groups))
            for reply in replies:
                flows = await self._run(partial(decode_flow_stats, [reply], version), _SLICE)
                for first in range(0, len(flows), _SLICE):
                    part = flows[first : first + _SLICE]
                    found |= await self._run(partial(_read_flows, part, expected), len(part))
                if len(found) > _MAX_ENTRIES:
                    raise SwitchRefusalError(f"it says that it holds more than {_MAX_ENTRIES:,} entries of ours")
        except MalformedError as error:
            raise SwitchRefusalError(f"its answer cannot be read: {error}") from error
        return found

    async def write(self, updates: Sequence[Update]) -> None:
        """Write updates; see Access. A refusal names the first that was refused."""
        try:
            messages = await self._worker.run(
                partial(_encode, updates, self._channel.version), _ITEMS_PER_ENTRY * len(updates)
            )
        except ValueError as error:
            raise SwitchRefusalError(f"OpenFlow cannot say it: {error}") from error
        if self._grant is not None:
            await self._grant.granted()
        try:
            await self._write(messages)
        except RefusedError as error:
            raise SwitchRefusalError(_refusal_words(error, updates)) from error
        except StaleError as error:
            self._on_stale(str(error))
            raise SwitchAwayError(str(error)) from error
        except AwayError as error:
            raise SwitchAwayError(str(error)) from error

    async def _write(self, messages: Sequence[bytes]) -> None:
        """Have all messages carried out at once; where the switch refuses any, those that it takes."""
        try:
            await self._channel.write(messages, bundle=True)
        except (RefusedError, ValueError):  # a message that fills a frame has no room in a bundle
            await self._channel.write(messages)

    async def read_level(self, level: int) -> dict[PortCounter, int]:
        """Read what a job has sent that is measured at a level. Raises SwitchAwayError and SwitchRefusalError."""
        version = self._channel.version
        flows = await self._request(flows_request(_OWNER | _MEASURING_BIT, OWNER_MASK, version))
        described = await self._request(group_descriptions_request(version))
        counted = await self._request(group_statistics_request(version))

        def decode() -> dict[PortCounter, int | None]:
            held, groups = decode_flow_stats(flows, version), decode_group_descriptions(described, version)
            return port_counters(level, held, groups, decode_group_statistics(counted, version))

        try:
            found = await self._run(decode, sum(map(len, (*flows, *described, *counted))) // _BYTES_PER_ENTRY)
        except MalformedError as error:
            raise SwitchRefusalError(f"its answer cannot be read: {error}") from error
        known = {counter: count for counter, count in found.items() if count is not None}
        if len(known) < len(found):
            raise SwitchRefusalError("it does not count what entries, or buckets of groups, send")
        return known

    async def read_job_flows(self) -> list[HeldFlow]:
        """Read the entries of whole jobs, with their counters. Raises SwitchAwayError and SwitchRefusalError."""
        replies = await self._request(flows_request(_OWNER | _JOB_BIT, OWNER_MASK, self._channel.version))
        try:
            return await self._run(partial(decode_flow_stats, replies, self._channel.version), _SLICE)
        except MalformedError as error:
            raise SwitchRefusalError(f"its answer cannot be read: {error}") from error

    async def read_ports(self) -> list[PortStatistics]:
        """Read the counters of all ports. Raises SwitchAwayError and SwitchRefusalError."""
        replies = await self._request(port_statistics_request(self._channel.version))
        try:
            return await self._run(
                partial(decode_port_statistics, replies, self._channel.version),
                sum(map(len, replies)) // _BYTES_PER_ENTRY,
            )
        except MalformedError as error:
            raise SwitchRefusalError(f"its answer cannot be read: {error}") from error

    def _read_groups(self, held: Sequence[HeldGroup], expected: State) -> dict[EntryKey, SwitchEntry]:
        found: dict[EntryKey, SwitchEntry] = {}
        for each in held:
            if not groups.is_own(each.group_id):
                continue
            group = unreadable_group(each.group_id) if each.group is None else each.group
            key = key_of(group)
            own = expected.get(key)
            is_same = isinstance(own, Group) and as_described(own, self._channel.version) == group
            found[key] = own if own is not None and is_same else group
        return found

    async def _request(self, message: bytes) -> list[bytes]:
        with _own_errors():
            return await self._channel.request(message)

    async def _run(self, work: Callable[[], _ResultT], entries: int) -> _ResultT:
        result = await self._worker.run(work, _ITEMS_PER_ENTRY * entries)
        await asyncio.sleep(0)
        return result


@contextmanager
def _own_errors() -> Iterator[None]:
    """Translate errors of the channel into those of Access."""
    try:
        yield
    except RefusedError as error:
        raise SwitchRefusalError(str(error)) from error
    except AwayError as error:
        raise SwitchAwayError(str(error)) from error


def _read_flows(held: Sequence[HeldFlow], expected: State) -> dict[EntryKey, SwitchEntry]:
    found: dict[EntryKey, SwitchEntry] = {}
    for each in held:
        entry: SwitchEntry = each if each.entry is None else each.entry
        key = key_of(entry)
        if isinstance(entry, HeldFlow) and (place := place_of(entry)) is not None and place in expected:
            key = place  # it is replaced: if it were deleted, that would be by a cookie that the new one has too
        own = expected.get(key)
        found[key] = own if own is not None and own == entry else entry
    return found


def _refusal_words(error: RefusedError, updates: Sequence[Update]) -> str:
    """Name the first entry that was refused, and count the others."""
    if not error.refusals:
        return str(error)
    index, refusal = next(iter(error.refusals.items()))
    entry = updates[index].entity
    others = f" (and {len(error.refusals) - 1:,} more entries)" if len(error.refusals) > 1 else ""
    return f"{kind_words(entry)} {entry_words(entry)}: {refusal.words}{others}"


def _encode(updates: Sequence[Update], version: int) -> list[bytes]:
    return [_message(update, version) for update in updates]


def _message(update: Update, version: int) -> bytes:
    entry = update.entity
    if isinstance(entry, Group):
        return encode_group_mod(entry, _GROUP_COMMANDS[update.kind], version)
    if isinstance(entry, HeldFlow):
        return delete_held(entry, version)
    owner = _OWNER | _BIT_OF_KIND.get(key_of(entry).kind, 0)
    if update.kind is UpdateKind.DELETE:
        return encode_flow_mod(entry, FlowCommand.DELETE, owner, version)
    # To add one in the place of another replaces its cookie too, and its counters go on.
    return encode_own(entry, owner, version)
