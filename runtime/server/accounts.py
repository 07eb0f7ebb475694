"""What the server keeps of a client: its functions, programs, slices and arrays."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from runtime.arrays import ArraySpec
from runtime.lowering.assign import Layout, Placement, host_cpus_of
from runtime.lowering.cache import LoweringCache
from runtime.lowering.subprograms import LoweredProgram
from runtime.messages import Failure
from runtime.server.channel import Channel
from runtime.server.islands import Slice
from runtime.server.plans import NumberedFunction, PlannedProgram, RegisteredProgram
from runtime.server.settings import ClientSettings


@dataclass(eq=False, slots=True)
class HeldArray:
    """An array that a client holds by a handle: what it is, where it lies, what makes it; or why it is not there.

    ``slice`` is that of the call that makes it. ``has_ended`` says that what makes it has ended on all hosts,
    ``is_there`` that it then was computed everywhere. Where no bound of its rows is known, it is there once hosts have
    told the rows of all shards; ``rows`` are those of the largest. ``holders`` are those who hold it, each with the
    handle: several where it was published. Its bytes are on the account of the first.
    """

    spec: ArraySpec
    layout: Layout
    gang: int | None
    failure: Failure | None = None
    size_bytes: int = 0
    slice: int | None = None
    has_ended: bool = False
    is_there: bool = False
    rows: int = -1
    holders: "list[tuple[Account, int]]" = field(default_factory=list)
    _waiting: list[Callable[[], None]] = field(default_factory=list)
    _sized: set[int] | None = None

    @property
    def shard_spec(self) -> ArraySpec:
        """What each shard is; of one that had no bound, with as many rows as the largest has."""
        spec = self.layout.sharding.shard_spec(self.spec)
        return spec if self.rows < 0 else replace(spec, shape=(self.rows, *spec.shape[1:]))

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call once it has ended."""
        self._waiting.append(call)

    def take_rows(self, shard: int, rows: int) -> bool:
        """Note the rows of a shard; return whether those of all are known, and with them a bound."""
        self._sized = self._sized or set()
        self._sized.add(shard)
        self.rows = max(self.rows, rows)
        if len(self._sized) < self.layout.sharding.shards:
            return False
        self.spec = self.layout.sharding.bounded(self.spec, self.rows)
        return True

    def end(self, *, is_there: bool) -> None:
        """Note that it has ended, and tell those who wait."""
        if is_there and not self.spec.is_bounded:
            return  # hosts have still to tell its rows
        self.has_ended, self.is_there = True, is_there
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for call in waiting:
                call()


@dataclass(eq=False)
class Ledger:
    """What all connections of a client hold, and what they have used since the server began.

    ``device_s`` is time of devices, ``host_s`` time of the CPUs of hosts. ``running`` programs are under way, and
    connections are ``waiting`` to start more than the quota allows.
    """

    settings: ClientSettings
    arrays: int = 0
    held_bytes: int = 0
    executions: int = 0
    device_s: float = 0.0
    host_s: float = 0.0
    running: int = 0
    waiting: "dict[Account, None]" = field(default_factory=dict)

    @property
    def has_room(self) -> bool:
        """Whether one more program may be under way."""
        most = self.settings.quota.most_programs
        return most is None or self.running < most

    def charge(self, seconds: float, *, is_host: bool) -> None:
        """Add time of devices, or of the CPUs of hosts."""
        if is_host:
            self.host_s += seconds
        else:
            self.device_s += seconds

    def excess(self, arrays: int, size_bytes: int) -> str | None:
        """Say which quota so much more would exceed; None where there is room."""
        quota, name = self.settings.quota, self.settings.name
        if quota.most_arrays is not None and self.arrays + arrays > quota.most_arrays:
            return f"client {name}: quota: it holds {self.arrays} of at most {quota.most_arrays} arrays"
        if quota.most_bytes is not None and self.held_bytes + size_bytes > quota.most_bytes:
            return (
                f"client {name}: quota: it holds {self.held_bytes:,} of at most {quota.most_bytes:,} bytes, "
                f"and asks for {size_bytes:,} more"
            )
        return None


@dataclass(eq=False)
class Account:
    """A client that is connected.

    ``pins`` counts by handle in how many publications an array is: it is held until these end, also where the client
    needs it no more (``retired``). ``held_back`` are messages that wait for programs to end.
    """

    number: int
    ledger: Ledger
    channel: Channel
    functions: dict[int, NumberedFunction] = field(default_factory=dict)
    programs: dict[int, RegisteredProgram] = field(default_factory=dict)
    slices: dict[int, Placement] = field(default_factory=dict)
    gangs: dict[int, frozenset[int]] = field(default_factory=dict)
    arrays: dict[int, HeldArray] = field(default_factory=dict)
    lowering: LoweringCache = field(default_factory=LoweringCache)
    executions: set[int] = field(default_factory=set)
    subprograms: set[int] = field(default_factory=set)
    is_suspended: bool = False
    has_ended: bool = False
    groups: int = 0
    pins: dict[int, int] = field(default_factory=dict)
    retired: set[int] = field(default_factory=set)
    held_back: deque[tuple[object, memoryview]] = field(default_factory=deque)
    held_back_bytes: int = 0
    _plans: dict[LoweredProgram, PlannedProgram] = field(default_factory=dict)
    _epoch: int = -1

    def plan(self, lowered: LoweredProgram, registered: RegisteredProgram, epoch: int) -> PlannedProgram:
        """Return what runs of a program need that was lowered in this epoch."""
        if epoch != self._epoch:
            self._plans.clear()
            self._epoch = epoch
        found = self._plans.get(lowered)
        if found is None:
            found = self._plans[lowered] = PlannedProgram(lowered, registered, dict(self.gangs))
            self.subprograms.update(found.numbers)
        return found

    @property
    def label(self) -> str:
        """Return what the schedulers call it."""
        return f"{self.name}#{self.number}"

    @property
    def name(self) -> str:
        """Return what the client calls itself, the same for all of its connections."""
        return self.ledger.settings.name

    def place(self, placed: Slice) -> None:
        """Note where a slice lies from now on, and the CPUs of its hosts, which are a slice of their own."""
        hosts = host_cpus_of(placed.number)
        self.slices[placed.number], self.gangs[placed.number] = placed.placement, placed.gang
        self.slices[hosts], self.gangs[hosts] = placed.host_cpus, placed.host_gang

    def displace(self, number: int) -> None:
        """Note that a slice has no devices any more."""
        self.slices.pop(number, None)
        self.slices.pop(host_cpus_of(number), None)

    def hold(self, handle: int, array: HeldArray) -> None:
        """Keep an array by a new handle."""
        self.arrays[handle] = array
        self.ledger.arrays += 1
        if not array.holders:
            self.ledger.held_bytes += array.size_bytes
        array.holders.append((self, handle))

    def count(self, array: HeldArray, size_bytes: int) -> None:
        """Note that an array that is held takes so many bytes more."""
        array.size_bytes += size_bytes
        self.ledger.held_bytes += size_bytes

    def let_go(self, handle: int) -> HeldArray | None:
        """Forget an array, and return it if there is one. Its bytes go on the account of the next who holds it."""
        array = self.arrays.pop(handle, None)
        if array is not None:
            self.ledger.arrays -= 1
            place = array.holders.index((self, handle))
            del array.holders[place]
            if place == 0:
                self.ledger.held_bytes -= array.size_bytes
                for heir, _ in array.holders[:1]:
                    heir.ledger.held_bytes += array.size_bytes
            if not array.holders and not array.spec.is_bounded:
                array.failure = array.failure or Failure("LostError", f"array {handle}: was released")
                array.end(is_there=False)  # nobody asks for its rows any more
        return array

    def pin(self, handle: int) -> None:
        """Hold an array for one more publication."""
        self.pins[handle] = self.pins.get(handle, 0) + 1

    def unpin(self, handle: int) -> bool:
        """End that a publication holds an array; return whether nothing else does."""
        self.pins[handle] -= 1
        if self.pins[handle]:
            return False
        del self.pins[handle]
        is_retired = handle in self.retired
        self.retired.discard(handle)
        return is_retired

    def needs_no_more(self, handles: Iterable[int]) -> list[int]:
        """Note that the client needs arrays no more; return those that no publication holds."""
        free = []
        for handle in handles:
            if handle in self.pins:
                self.retired.add(handle)
            else:
                self.retired.discard(handle)
                free.append(handle)
        return free
