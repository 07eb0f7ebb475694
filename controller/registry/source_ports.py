"""The 5-tuples that flows hold, and the assignment of source ports to flows that bring none."""

from collections import Counter
from collections.abc import Iterator, Set

from controller.registry.errors import ConflictError
from policies.flows import FlowKey
from topologies import addressing
from topologies.addressing import FiveTuple, Service
from topologies.fabric import Nic

_Pair = tuple[int, int]
_Ends = tuple[int, int, Service]
"""All of a 5-tuple but its source port: both addresses, and to what it leads."""


class SourcePorts:
    """5-tuples and the flows that hold them; no two flows hold the same one.

    Counts how many each tenant holds between two NICs.
    """

    def __init__(self) -> None:
        self._owners: dict[FiveTuple, FlowKey] = {}
        self._counts: Counter[tuple[str, _Pair]] = Counter()
        """By tenant and pair."""
        self._next_free: dict[_Ends, int] = {}
        """By ends: all assignable ports below are taken. Those that are not listed begin with the first port."""

    def __len__(self) -> int:
        return len(self._owners)

    def __contains__(self, five_tuple: object) -> bool:
        return five_tuple in self._owners

    def owner(self, five_tuple: FiveTuple) -> FlowKey | None:
        """The flow that holds a 5-tuple."""
        return self._owners.get(five_tuple)

    def count(self, tenant: str, five_tuple: FiveTuple) -> int:
        """How many 5-tuples a tenant holds between the NICs of this one."""
        return self._counts[tenant, _pair_of(five_tuple)]

    def take(self, five_tuple: FiveTuple, key: FlowKey, tenant: str) -> None:
        """Give a free 5-tuple to a flow of a tenant."""
        self._owners[five_tuple] = key
        self._counts[tenant, _pair_of(five_tuple)] += 1

    def release(self, five_tuple: FiveTuple, tenant: str) -> None:
        """Make a 5-tuple of a tenant's flow free again."""
        del self._owners[five_tuple]
        self.discount(five_tuple, tenant)
        ends = (*_pair_of(five_tuple), five_tuple.service)
        if ends in self._next_free:
            self.set_next_free(ends, min(self._next_free[ends], five_tuple.source_port))

    def discount(self, five_tuple: FiveTuple, tenant: str) -> None:
        """Count a 5-tuple no more that a tenant has lost to another flow."""
        key = tenant, _pair_of(five_tuple)
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]

    def reserve(self, tenant: str, chosen: Set[FiveTuple]) -> "PortReservation":
        """An empty reservation, which assigns none of the 5-tuples that hosts have ``chosen`` themselves."""
        return PortReservation(self, tenant, chosen)

    def next_free(self, ends: _Ends) -> int:
        """A port below which no assignable one is free."""
        return self._next_free.get(ends, addressing.FIRST_SOURCE_PORT)

    def set_next_free(self, ends: _Ends, port: int) -> None:
        """Set a port below which no assignable one is free."""
        if port > addressing.FIRST_SOURCE_PORT:
            self._next_free[ends] = port
        else:
            self._next_free.pop(ends, None)


class PortReservation:
    """5-tuples that one request of a tenant takes; ``cancel`` gives them back."""

    def __init__(self, ports: SourcePorts, tenant: str, chosen: Set[FiveTuple]) -> None:
        self._ports = ports
        self._tenant = tenant
        self._chosen = chosen
        self._taken: dict[FiveTuple, FlowKey] = {}
        self._first_free: dict[_Ends, int] = {}
        """Where the search between two ends began."""

    def take(self, five_tuple: FiveTuple, key: FlowKey) -> None:
        """Take a 5-tuple that has no owner."""
        self._ports.take(five_tuple, key, self._tenant)
        self._taken[five_tuple] = key

    def assign(self, source: Nic, destination: Nic, service: Service, held_source_port: int | None) -> FiveTuple | None:
        """A free 5-tuple between two NICs: with the port held before, else with the lowest. None where none is left."""
        for port in self._candidates((source.address, destination.address, service), held_source_port):
            five_tuple = FiveTuple(source.address, destination.address, service.protocol, port, service.port)
            if not (five_tuple in self._ports or five_tuple in self._chosen):
                return five_tuple
        return None

    def check_is_kept(self) -> None:
        """Raise ConflictError where another flow holds a 5-tuple of these after all: its withdrawal was undone."""
        for five_tuple, key in self._taken.items():
            if self._ports.owner(five_tuple) is not key:
                raise ConflictError(f"five_tuple: {five_tuple} is another flow's again, whose withdrawal is not stored")

    def cancel(self) -> None:
        """Give back all that is still held."""
        for five_tuple, key in self._taken.items():
            if self._ports.owner(five_tuple) is key:
                self._ports.release(five_tuple, self._tenant)
            else:
                self._ports.discount(five_tuple, self._tenant)
        for ends, port in self._first_free.items():
            # Ports that hosts have chosen were passed over.
            self._ports.set_next_free(ends, min(port, self._ports.next_free(ends)))

    def _candidates(self, ends: _Ends, held_source_port: int | None) -> Iterator[int]:
        if held_source_port is not None:
            yield held_source_port
        first = self._ports.next_free(ends)
        self._first_free.setdefault(ends, first)
        for port in range(first, addressing.LAST_SOURCE_PORT + 1):
            self._ports.set_next_free(ends, port)
            yield port


def _pair_of(five_tuple: FiveTuple) -> _Pair:
    return five_tuple.source_address, five_tuple.destination_address
