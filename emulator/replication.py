"""Multicast groups and clone sessions of one switch, in the memory that compiled code reads."""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from enum import StrEnum

from emulator.engine.state import LEVELS, MAX_REPLICAS
from emulator.entries import AlreadyExistsError, InvalidRequestError, NotFoundError, ResourceExhaustedError
from emulator.memory import PAGE_WORDS, REPLICA_WORDS, REPLICAS, Arena

MAX_INSTANCE = (1 << 16) - 1
MAX_LENGTH_BYTES = (1 << 32) - 1


class Replicator(StrEnum):
    """Kind of object that makes a switch copy a packet."""

    GROUP = "multicast group"
    SESSION = "clone session"

    @property
    def highest(self) -> int:
        """Highest valid number; the lowest is 1."""
        return (1 << 16) - 1 if self is Replicator.GROUP else (1 << 15) - 1


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy: it leaves by ``port``, and the program sees ``instance``.

    While that port is down, the first of the ``backups`` whose port is up takes its place. If there is none, the copy
    is made for ``port`` and lost there.
    """

    port: int
    instance: int = 0
    backups: tuple["Replica", ...] = ()


@dataclass(frozen=True, slots=True)
class Replication:
    """Copies that a multicast group or clone session makes.

    A copy is cut to ``longest_bytes`` as it leaves. It joins the queue of ``level``, or of its own priority if that is
    None.
    """

    replicas: tuple[Replica, ...]
    longest_bytes: int | None = None
    level: int | None = None


class ReplicationMemory:
    """Multicast groups or clone sessions of a switch, by number.

    Compiled code finds them through the word ``pointer``. It is None in a program that copies no packets; groups and
    sessions are stored all the same. ``is_up`` tells which ports are. A method that fails raises a ``SwitchError`` and
    changes nothing.
    """

    def __init__(
        self,
        arena: Arena,
        kind: Replicator,
        pointer: int | None,
        ports: Container[int],
        is_up: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self._arena = arena
        self._kind = kind
        self._pointer = pointer
        self._ports = ports
        self._is_up = is_up
        self._found: dict[int, Replication] = {}
        self._blocks: dict[int, tuple[int, int]] = {}
        self._pages: dict[int, int] = {}
        if pointer is not None:
            root = arena.allocate(PAGE_WORDS)  # before taking a view of the words: it may move them
            arena.words[pointer] = root

    def __iter__(self) -> Iterator[tuple[int, Replication]]:
        return iter(tuple(self._found.items()))

    def insert(self, number: int, replication: Replication) -> None:
        """Add a group or session."""
        self._require_valid(number, replication)
        if number in self._found:
            raise AlreadyExistsError(f"there is a {self._kind} {number}")
        self._place(number, replication)

    def modify(self, number: int, replication: Replication) -> None:
        """Replace a group or session."""
        self._require_valid(number, replication)
        self._require(number)
        self._remove(number)
        self._place(number, replication)

    def delete(self, number: int) -> None:
        """Remove a group or session."""
        self._require(number)
        self._remove(number)

    def port_changed(self, port: int) -> None:
        """React to a port that has come up or gone down."""
        for number, (block, _) in self._blocks.items():
            replicas = self._found[number].replicas
            for position, replica in enumerate(replicas):
                if replica.backups and any(other.port == port for other in (replica, *replica.backups)):
                    chosen, place = self._chosen(replica), block + REPLICAS + REPLICA_WORDS * position
                    self._arena.words[place : place + REPLICA_WORDS] = chosen.port, chosen.instance

    def free(self) -> None:
        """Return all words to the arena."""
        for number in tuple(self._found):
            self._remove(number)
        if self._pointer is not None:
            for page in (*self._pages.values(), int(self._arena.words[self._pointer])):
                self._arena.free(page, PAGE_WORDS)

    def _place(self, number: int, replication: Replication) -> None:
        self._found[number] = replication
        if self._pointer is None:
            return
        level = 0 if replication.level is None else replication.level + 1
        words = [replication.longest_bytes or 0, level, len(replication.replicas)]
        for replica in map(self._chosen, replication.replicas):
            words += [replica.port, replica.instance]
        assert len(words) == REPLICAS + REPLICA_WORDS * len(replication.replicas)
        block = self._arena.allocate(len(words))
        self._arena.words[block : block + len(words)] = words
        self._blocks[number] = block, len(words)
        self._point(number, block)

    def _chosen(self, replica: Replica) -> Replica:
        """Return the replica or its first backup whose port is up, or the replica itself."""
        return next((other for other in (replica, *replica.backups) if self._is_up(other.port)), replica)

    def _remove(self, number: int) -> None:
        del self._found[number]
        if self._pointer is not None:
            self._point(number, 0)
            self._arena.free(*self._blocks.pop(number))

    def _point(self, number: int, block: int) -> None:
        assert self._pointer is not None
        page, index = divmod(number, PAGE_WORDS)
        if page not in self._pages:
            self._pages[page] = self._arena.allocate(PAGE_WORDS)
            self._arena.words[int(self._arena.words[self._pointer]) + page] = self._pages[page]
        self._arena.words[self._pages[page] + index] = block

    def _require(self, number: int) -> None:
        if number not in self._found:
            raise NotFoundError(f"there is no {self._kind} {number}")

    def _require_valid(self, number: int, replication: Replication) -> None:
        where = f"{self._kind} {number}"
        if not 1 <= number <= self._kind.highest:
            raise InvalidRequestError(f"a {self._kind} has a number within 1 to {self._kind.highest}, not {number}")
        seen: set[tuple[int, int]] = set()
        for primary in replication.replicas:
            if any(backup.port == primary.port for backup in primary.backups):
                raise InvalidRequestError(f"{where}: a replica and its backup both have port {primary.port}")
        for replica in (one for primary in replication.replicas for one in (primary, *primary.backups)):
            if replica.port not in self._ports:
                raise InvalidRequestError(f"{where}: the switch has no port {replica.port}")
            if not 0 <= replica.instance <= MAX_INSTANCE:
                raise InvalidRequestError(
                    f"{where}: an instance must be within 0 to {MAX_INSTANCE}, not {replica.instance}"
                )
            if (replica.port, replica.instance) in seen:
                raise InvalidRequestError(
                    f"{where}: port {replica.port} with instance {replica.instance} is given twice"
                )
            seen.add((replica.port, replica.instance))
        if len(replication.replicas) > MAX_REPLICAS:
            raise ResourceExhaustedError(f"{where}: {len(replication.replicas)} replicas are more than {MAX_REPLICAS}")
        if replication.level is not None and not 0 <= replication.level < LEVELS:
            raise InvalidRequestError(f"{where}: the level must be within 0 to {LEVELS - 1}, not {replication.level}")
        if not 0 <= (replication.longest_bytes or 0) <= MAX_LENGTH_BYTES:
            raise InvalidRequestError(f"{where}: a copy cannot have {replication.longest_bytes} bytes")
