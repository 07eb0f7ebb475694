"""The hosts as the server sees them: connections to their executors, and what each has been told already."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from runtime import messages
from runtime.frames import GRANT, Kind
from runtime.lowering.subprograms import Subprogram
from runtime.messages import Failure
from runtime.server.channel import Channel
from runtime.server.plans import NumberedFunction
from runtime.substrates.interface import NetworkHost


@dataclass(eq=False)
class Host:
    """An executor that is connected. On a host of a network it has a ``network_address`` too.

    ``cause`` is why it ends, where that is known before its connection does.
    """

    number: int
    island: str
    channel: Channel
    place: messages.Place
    network_host: NetworkHost | None = None
    network_address: str = ""
    is_leaving: bool = False
    cause: str = ""
    functions: set[int] = field(default_factory=set)
    subprograms: set[int] = field(default_factory=set)

    def place_for(self, other: "Host") -> messages.Place:
        """Return where another host reaches it: over the network from a host of another island."""
        return messages.Place(self.network_address) if self.is_apart_from(other) else self.place

    def is_apart_from(self, other: "Host") -> bool:
        """Return whether arrays go between the two over the network."""
        own, its = self.network_host, other.network_host
        return own is not None and its is not None and own.name != its.name and self.island != other.island

    def load(self, number: int, subprogram: Subprogram, functions: Sequence[NumberedFunction]) -> None:
        """Make a subprogram and its functions known, unless they are."""
        if number in self.subprograms:
            return
        for each in functions:
            self.load_function(each.number, each.registered)
        self.channel.send(messages.LoadSubprogram(number, subprogram, tuple(each.number for each in functions)))
        self.subprograms.add(number)

    def load_function(self, number: int, function: messages.RegisterFunction) -> None:
        """Make a function known, unless it is."""
        if number not in self.functions:
            self.channel.send(messages.LoadFunction(number, function))
            self.functions.add(number)

    def drop_client(self, client: int, failure: Failure, functions: set[int], subprograms: set[int]) -> None:
        """Make the host forget a client that is gone, with what of these was loaded for it."""
        known = (functions & self.functions, subprograms & self.subprograms)
        self.functions -= functions
        self.subprograms -= subprograms
        self.channel.send(messages.DropClient(client, failure, *(tuple(sorted(each)) for each in known)))

    def grant(self, grants: Iterable[tuple[int, int, int]]) -> None:
        """Let the host enqueue stretches, in this order: execution, first and last node."""
        self.channel.send_frame(Kind.GRANTS, b"".join([GRANT.pack(*each) for each in grants]))
