"""What a server is started with."""

import math
from dataclasses import dataclass

DISPATCHES = ("parallel", "sequential")
"""Whether hosts are told at once what is granted, or each after what it depends on has been enqueued."""
POLICIES = ("fifo", "shares", "earliest-need")
"""How schedulers order computations: as they come, so that clients get device time by weight, or by slack."""


NETWORKS = ("shared-memory", "tcp")
"""How executors pass arrays to each other: in memory that they share, on one machine, or over TCP."""


@dataclass(frozen=True, slots=True)
class IslandSettings:
    """An island: hosts, each with so many devices. ``mesh`` is the shape of their interconnect, if it has one.

    The memory of devices is a budget for the arrays on them, that of the host for arrays that are spilled from them.
    """

    name: str
    hosts: int
    devices_per_host: int
    mesh: tuple[int, ...] | None = None
    device_memory_bytes: int = 1 << 30
    host_memory_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        for name in ("device_memory_bytes", "host_memory_bytes"):
            if getattr(self, name) < 0:
                raise ValueError(f"island {self.name}: {name}: must not be negative, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class NewHost:
    """A host of an island, with so many devices; the memories are those of ``IslandSettings``."""

    island: str
    devices: int
    device_memory_bytes: int = 1 << 30
    host_memory_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        if self.devices < 1:
            raise ValueError(f"host of island {self.island}: devices: expected at least one, got {self.devices}")
        for name in ("device_memory_bytes", "host_memory_bytes"):
            if getattr(self, name) < 0:
                found = getattr(self, name)
                raise ValueError(f"host of island {self.island}: {name}: must not be negative, got {found}")


@dataclass(frozen=True, slots=True)
class Quota:
    """What a client may hold at once: bytes of arrays on devices, and arrays. None where nothing limits it."""

    most_bytes: int | None = None
    most_arrays: int | None = None

    def __post_init__(self) -> None:
        for name, most in (("most_bytes", self.most_bytes), ("most_arrays", self.most_arrays)):
            if most is not None and most < 0:
                raise ValueError(f"{name}: must not be negative, got {most}")


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Who may connect: a name, the token that shows it, and the weight of its share.

    Several connections may use one token; its quota is for all of them together. An operator may suspend, resume and
    migrate clients, and let hosts join and leave.
    """

    name: str
    token: str
    weight: float = 1.0
    quota: Quota = Quota()
    is_operator: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.weight < math.inf:
            raise ValueError(f"client {self.name}: weight: expected a number above 0, got {self.weight}")

    def check_operator(self) -> None:
        """Raise ValueError unless the client is an operator."""
        if not self.is_operator:
            raise ValueError(f"client {self.name} is no operator")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a server is started with.

    ``secret`` is what executors show, ``folder`` where their sockets lie. ``look_ahead_s`` is how much work schedulers
    grant ahead of its completion, in seconds on each device. ``preparation_s`` stands for what a host does before it
    can enqueue a computation, one after the other.
    """

    address: str
    folder: str
    islands: tuple[IslandSettings, ...]
    clients: tuple[ClientSettings, ...]
    secret: str
    policy: str
    look_ahead_s: float
    dispatch: str = "parallel"
    preparation_s: float = 0.0
    network: str = "shared-memory"

    def __post_init__(self) -> None:
        names = [client.name for client in self.clients]
        if len(set(names)) < len(names):
            raise ValueError(f"clients: expected each name once, got {', '.join(names)}")
        if self.policy not in POLICIES:
            raise ValueError(f"policy: expected one of {', '.join(POLICIES)}, got {self.policy!r}")
        if self.dispatch not in DISPATCHES:
            raise ValueError(f"dispatch: expected one of {', '.join(DISPATCHES)}, got {self.dispatch!r}")
        if self.network not in NETWORKS:
            raise ValueError(f"network: expected one of {', '.join(NETWORKS)}, got {self.network!r}")
        if not self.look_ahead_s > 0:
            raise ValueError(f"look_ahead_s: expected a time above 0, got {self.look_ahead_s}")
