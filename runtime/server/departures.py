"""Hosts that leave: their slices are vacated, and their arrays move to other hosts behind the handles of clients.

What has begun on such a host runs to its end there. An array moves once it has been computed: each shard that lies on
the host goes straight to another one, which then has its place in the layout. Programs that were started before find
it where it was, later ones where it is. The host may go when nothing needs it any more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from runtime import messages
from runtime.lowering.assign import Layout, Placement, host_cpus_of
from runtime.server.accounts import Account, HeldArray
from runtime.server.hosts import Host
from runtime.server.islands import Islands, Slice
from runtime.server.publications import share_on
from runtime.store.buffers import HOST

Spot = tuple[int, int]
"""A host, and a device counted within it."""


@dataclass(eq=False, slots=True)
class _Shard:
    """Where a shard goes: the number of its move, or None before it begins, and whether it is there."""

    spot: Spot
    move: int | None = None
    is_taken: bool = False


@dataclass(eq=False, slots=True)
class _MovingArray:
    """An array of which shards lie on a host that leaves, with one of its holders, under whose handle it moves."""

    account: Account
    handle: int
    held: HeldArray
    shards: dict[int, _Shard]


@dataclass(eq=False)
class Departure:
    """A host that leaves, the arrays that have still to move, and how many have."""

    host: int
    arrays: list[_MovingArray] = field(default_factory=list)
    moved: int = 0


class Departures:
    """Moves what lies on hosts that leave. Call ``advance`` from time to time."""

    def __init__(self, islands: Islands, hosts: Mapping[int, Host], accounts: Mapping[int, Account]) -> None:
        self._islands = islands
        self._hosts = hosts
        self._accounts = accounts
        self._moves: dict[int, _Shard] = {}
        self._numbers = count()

    def begin(self, host: int) -> Departure:
        """Vacate a host. Raises ValueError, which names what has no room elsewhere; nothing has changed then."""
        departure = Departure(host)

        def check(moved: Sequence[Slice]) -> None:
            after = {number: place for each in moved for number, place in _places(each)}
            spares = _Spares(self._islands, host)
            for account in self._accounts.values():
                for handle, held in account.arrays.items():
                    local = held.layout.placement.shards_by_host.get(host, ())
                    if local and held.failure is None and held.holders[0] == (account, handle):
                        shards = {each: _Shard(self._spot(account, held, each, after, spares)) for each in local}
                        departure.arrays.append(_MovingArray(account, handle, held, shards))

        by_label = {account.label: account for account in self._accounts.values()}
        for moved in self._islands.vacate_host(host, check):
            by_label[moved.client].place(moved)
        self._hosts[host].is_leaving = True
        return departure

    def advance(self, departure: Departure) -> bool:
        """Begin what can begin, and note what has ended; return whether all arrays have moved."""
        departure.arrays = [each for each in departure.arrays if not self._has_moved(departure, each)]
        return not departure.arrays

    def taken(self, message: messages.ShardTaken) -> None:
        """Note that a shard has come to its new host, or did not and has to move again."""
        shard = self._moves.pop(message.move, None)
        if shard is not None:
            shard.is_taken = message.is_there
            if not message.is_there:
                shard.move = None

    def _has_moved(self, departure: Departure, array: _MovingArray) -> bool:
        held = array.held
        if not held.holders or held.failure is not None:
            self._cancel(array)
            return True
        if not held.has_ended:
            return False
        if (array.account, array.handle) not in held.holders:  # whom it was moving for needs it no more
            self._cancel(array)
            array.account, array.handle = held.holders[0]
            array.shards = {number: _Shard(shard.spot) for number, shard in array.shards.items()}
        for number, shard in array.shards.items():
            if shard.spot[0] not in self._hosts:  # it has ended; what it had is still here
                self._moves.pop(-1 if shard.move is None else shard.move, None)
                spot = _Spares(self._islands, departure.host).take(held)
                if spot is None:
                    return False
                shard = array.shards[number] = _Shard(spot)
            if shard.move is None:
                self._start(departure.host, array, number, shard)
        if not all(shard.is_taken for shard in array.shards.values()):
            return False
        name, targets = (array.account, array.handle), {shard.spot[0] for shard in array.shards.values()}
        for holder in held.holders:
            if holder != name:
                share_on(self._hosts, targets, name, holder)
        held.layout = _moved(held.layout, {number: shard.spot for number, shard in array.shards.items()})
        for account, handle in held.holders:
            self._hosts[departure.host].channel.send(messages.ReleaseOn(account.number, (handle,)))
        departure.moved += 1
        return True

    def _start(self, host: int, array: _MovingArray, number: int, shard: _Shard) -> None:
        move = shard.move = next(self._numbers)
        self._moves[move] = shard
        target, device = shard.spot
        name = (move, array.account.number, array.handle, number)
        self._hosts[target].channel.send(messages.TakeShard(*name, array.held.shard_spec, device))
        self._hosts[host].channel.send(messages.GiveShard(*name, target))

    def _cancel(self, array: _MovingArray) -> None:
        """Let hosts forget what they got of an array that nobody needs any more."""
        by_host: dict[int, list[int]] = {}
        for number, shard in array.shards.items():
            if shard.move is not None:
                self._moves.pop(shard.move, None)
                by_host.setdefault(shard.spot[0], []).append(number)
        for host, shards in by_host.items():
            if host in self._hosts:
                forget = messages.ForgetShards(array.account.number, array.handle, tuple(shards))
                self._hosts[host].channel.send(forget)

    def _spot(
        self, account: Account, held: HeldArray, shard: int, after: Mapping[int, Placement], spares: "_Spares"
    ) -> Spot:
        """Return where a shard goes: where its slice is from now on, or where there is room."""
        before = held.layout.placement
        place = None if held.slice is None or account.is_suspended else _slice_of(account, held.slice, after)
        if place is not None and len(place.hosts) == len(before.hosts):
            spot = place.hosts[shard], place.devices[shard]
            if spot[0] in self._hosts and spares.fits(held, spot):
                return spot
        spare = spares.take(held)
        if spare is None:
            name = f"array {held.spec} of client {account.label}"
            raise ValueError(f"host {spares.host}: cannot leave: {name} has no room elsewhere")
        return spare


class _Spares:
    """Devices for arrays whose slices have none: those of their island first, and the least loaded."""

    def __init__(self, islands: Islands, host: int) -> None:
        self.host = host
        self._islands = islands
        self._taken: dict[Spot, int] = {}

    def fits(self, held: HeldArray, spot: Spot) -> bool:
        """Return whether a device could ever hold a shard of an array."""
        host = self._islands.hosts[spot[0]]
        capacity_bytes = host.host_memory_bytes if spot[1] == HOST else host.device_memory_bytes
        return not held.spec.is_bounded or held.shard_spec.size_bytes <= capacity_bytes

    def take(self, held: HeldArray) -> Spot | None:
        """Return a device for a shard of an array, or None where none is large enough."""
        spares = self._islands.spares(held.layout.placement.island)
        fitting = [spot for spot in spares if spot[0] != self.host and self.fits(held, spot)]
        if not fitting:
            return None

        def burden(spot: Spot) -> tuple[bool, int, Spot]:
            is_elsewhere, load = spares[spot]
            return is_elsewhere, load + self._taken.get(spot, 0), spot

        spot = min(fitting, key=burden)
        self._taken[spot] = self._taken.get(spot, 0) + 1
        return spot


def _places(moved: Slice) -> tuple[tuple[int, Placement], tuple[int, Placement]]:
    return (moved.number, moved.placement), (host_cpus_of(moved.number), moved.host_cpus)


def _slice_of(account: Account, number: int, after: Mapping[int, Placement]) -> Placement | None:
    return after.get(number) or account.slices.get(number)


def _moved(layout: Layout, spots: Mapping[int, Spot]) -> Layout:
    """Return a layout with shards at other places."""
    before = layout.placement
    places = [spots.get(shard, place) for shard, place in enumerate(zip(before.hosts, before.devices, strict=True))]
    placement = replace(before, hosts=tuple(host for host, _ in places), devices=tuple(device for _, device in places))
    return Layout(layout.sharding, placement)
