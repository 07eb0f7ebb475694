"""Arrays that clients publish: others who may read them hold them too, under handles of their own.

An array is one on its hosts, whoever holds it. It lives until the last holder lets go; its bytes are on the account of
the first one. A publication holds what it names until it is withdrawn or the connection that made it ends; those who
opened it before keep what they hold. Nobody can change it: arrays never change, and a name that is in use is refused.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from runtime import messages
from runtime.messages import OpenedArray
from runtime.server.accounts import Account, HeldArray
from runtime.server.hosts import Host
from runtime.structures import count_arrays, from_plain

_MOST_CHARACTERS = 200
FIRST_OPENED_HANDLE = 1 << 62
"""Of arrays that clients open; they number their own from 0."""


@dataclass(frozen=True, eq=False, slots=True)
class _Publication:
    """What a client publishes, and how it is nested."""

    account: Account
    handles: tuple[int, ...]
    arrays: tuple[HeldArray, ...]
    structure: Any


class Publications:
    """What is published, by the name of the client and its own. ``release`` ends that a client holds some arrays."""

    def __init__(self, hosts: Mapping[int, Host], release: Callable[[Account, Sequence[int]], None]) -> None:
        self._hosts = hosts
        self._release = release
        self._published: dict[str, _Publication] = {}
        self._numbers = count(FIRST_OPENED_HANDLE)

    def publish(self, account: Account, message: messages.Publish) -> None:
        """Publish arrays, and answer."""
        self._answer(account, message.request, lambda: self._publish(account, message))

    def withdraw(self, account: Account, message: messages.Withdraw) -> None:
        """End a publication, and answer."""
        self._answer(account, message.request, lambda: self._withdraw(account, message.name))

    def open(self, account: Account, message: messages.OpenPublished) -> None:
        """Let a client hold what was published, once it has been computed, and answer."""
        owner, name = _full_name(account, message.name)
        found = self._published.get(name)
        if not account.ledger.settings.may_read(owner):
            self._refuse(account, message, f"client {account.name}: may not read what client {owner!r} publishes")
        elif found is None:
            self._refuse(account, message, f"{name}: is not published")
        else:
            self._open_when_ended(account, message, name, found)

    def drop(self, account: Account) -> None:
        """End the publications of a connection that has ended."""
        for name in [name for name, each in self._published.items() if each.account is account]:
            del self._published[name]

    def shown(self) -> list[dict[str, Any]]:
        """Return what people see of publications."""
        return [
            {
                "name": name,
                "connection": each.account.label,
                "arrays": len(each.arrays),
                "size_bytes": sum(array.size_bytes for array in each.arrays),
                "readers": len({holder for array in each.arrays for holder, _ in array.holders} - {each.account}),
            }
            for name, each in self._published.items()
        ]

    def _publish(self, account: Account, message: messages.Publish) -> None:
        owner, name = _full_name(account, message.name)
        if owner != account.name:
            raise ValueError(f"{name}: client {account.name} may not write what belongs to client {owner!r}")
        if len(name) > _MOST_CHARACTERS:
            raise ValueError(f"{name:.50}…: a name has at most {_MOST_CHARACTERS} characters")
        if name in self._published:
            raise ValueError(f"{name}: is published, and cannot be written; withdraw it first")
        missing = set(message.handles) - account.arrays.keys()
        if missing:
            raise ValueError(f"{name}: there is no array {min(missing)}")
        if count_arrays(from_plain(message.structure)) != len(message.handles):
            raise ValueError(f"{name}: its structure is not that of {len(message.handles)} arrays")
        arrays = tuple(account.arrays[handle] for handle in message.handles)
        for array in arrays:
            if array.failure is not None:
                raise ValueError(f"{name}: {array.failure.message}")
        for handle in message.handles:
            account.pin(handle)
        self._published[name] = _Publication(account, message.handles, arrays, message.structure)

    def _withdraw(self, account: Account, asked: str) -> None:
        owner, name = _full_name(account, asked)
        found = self._published.get(name)
        if owner != account.name:
            raise ValueError(f"{name}: client {account.name} may not withdraw what belongs to client {owner!r}")
        if found is None:
            raise ValueError(f"{name}: is not published")
        del self._published[name]
        self._release(found.account, [handle for handle in found.handles if found.account.unpin(handle)])

    def _open_when_ended(
        self, account: Account, message: messages.OpenPublished, name: str, found: _Publication
    ) -> None:
        if account.has_ended:
            return
        if self._published.get(name) is not found:
            self._refuse(account, message, f"{name}: is not published any more")
            return
        for array in found.arrays:
            if not array.has_ended and array.failure is None:
                array.when_ended(lambda: self._open_when_ended(account, message, name, found))
                return
        excess = account.ledger.excess(len(found.arrays), 0)
        if excess is not None:
            self._refuse(account, message, f"{name}: {excess}")
            return
        opened = []
        for handle, array in zip(found.handles, found.arrays, strict=True):
            own = next(self._numbers)
            account.hold(own, array)
            opened.append(OpenedArray(own, array.spec, array.layout.sharding))
            share_on(self._hosts, array.layout.placement.shards_by_host, (found.account, handle), (account, own))
        account.channel.send(messages.Opened(message.request, found.structure, tuple(opened)))

    def _answer(self, account: Account, request: int, work: Callable[[], None]) -> None:
        try:
            work()
        except ValueError as error:
            account.channel.send(messages.Refused(request, str(error)))
        else:
            account.channel.send(messages.Done(request))

    def _refuse(self, account: Account, message: messages.OpenPublished, why: str) -> None:
        account.channel.send(messages.Refused(message.request, why))


def share_on(
    hosts: Mapping[int, Host], numbers: Iterable[int], held: tuple[Account, int], reader: tuple[Account, int]
) -> None:
    """Tell hosts that somebody else holds an array too."""
    share = messages.ShareOn(held[0].number, held[1], reader[0].number, reader[1])
    for number in numbers:
        if number in hosts:
            hosts[number].channel.send(share)


def _full_name(account: Account, name: str) -> tuple[str, str]:
    """Return whose a name is, and the name with its owner's."""
    owner, slash, _ = name.partition("/")
    return (owner, name) if slash else (account.name, f"{account.name}/{name}")
