"""What a server is started with."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from runtime.substrates.interface import DEFAULT_KIND, NetworkHost, NewHost
from runtime.substrates.ray_cluster import RaySettings

DISPATCHES = ("parallel", "sequential")
"""Whether hosts are told at once what is granted, or each after what it depends on has been enqueued."""
POLICIES = ("fifo", "shares", "earliest-need")
"""How schedulers order computations: as they come, so that clients get device time by weight, or by slack."""


NETWORKS = ("shared-memory", "tcp", "machines")
"""How executors pass arrays to each other: in memory that they share, over TCP, or each where it can be.

``machines`` shares memory on each machine, and uses TCP between them.
"""


@dataclass(frozen=True, slots=True)
class IslandSettings:
    """An island: hosts, each with so many devices. ``mesh`` is the shape of their interconnect, if it has one.

    The memory of devices is a budget for the arrays on them, that of the host for arrays that are spilled from them.
    ``kind`` is what operators call the devices, and what constraints of slices may ask for.
    """

    name: str
    hosts: int
    devices_per_host: int
    mesh: tuple[int, ...] | None = None
    device_memory_bytes: int = 1 << 30
    host_memory_bytes: int = 4 << 30
    kind: str = DEFAULT_KIND

    def __post_init__(self) -> None:
        if self.mesh is not None and (not self.mesh or min(self.mesh) < 1):
            raise ValueError(f"island {self.name}: mesh: every side must be positive, got {self.mesh}")
        if self.mesh is not None and math.prod(self.mesh) < self.hosts * self.devices_per_host:
            raise ValueError(f"island {self.name}: its mesh has fewer places than it has devices")
        self.new_host()

    def new_host(self) -> NewHost:
        """Return what each of its hosts is. Raises ValueError, which names what is wrong."""
        memories = (self.device_memory_bytes, self.host_memory_bytes)
        return NewHost(self.name, self.devices_per_host, *memories, self.kind)


@dataclass(frozen=True, slots=True)
class Quota:
    """What a client may hold at once: bytes of arrays on devices, and arrays. None where nothing limits it.

    ``most_programs`` may be under way at once; further ones are held back until others have ended.
    """

    most_bytes: int | None = None
    most_arrays: int | None = None
    most_programs: int | None = None

    def __post_init__(self) -> None:
        for name, most in (("most_bytes", self.most_bytes), ("most_arrays", self.most_arrays)):
            if most is not None and most < 0:
                raise ValueError(f"{name}: must not be negative, got {most}")
        if self.most_programs is not None and self.most_programs < 1:
            raise ValueError(f"most_programs: expected at least one, got {self.most_programs}")


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Who may connect: a name, the token that shows it, and the weight of its share.

    Several connections may use one token; its quota is for all of them together. An operator may suspend, resume and
    migrate clients, and let hosts join and leave. ``reads`` names the clients whose published arrays this one may read;
    its own it may, and operators may all.
    """

    name: str
    token: str
    weight: float = 1.0
    quota: Quota = Quota()
    is_operator: bool = False
    reads: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.weight < math.inf:
            raise ValueError(f"client {self.name}: weight: expected a number above 0, got {self.weight}")
        if set("/#") & set(self.name):
            raise ValueError(f"client {self.name}: a name has no / and no #, which stand in names of what clients have")

    def may_read(self, owner: str) -> bool:
        """Return whether the client may read what another one publishes."""
        return self.is_operator or owner == self.name or owner in self.reads

    def check_operator(self) -> None:
        """Raise ValueError unless the client is an operator."""
        if not self.is_operator:
            raise ValueError(f"client {self.name} is no operator")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a server is started with.

    ``secret`` is what executors show, ``folder`` where their sockets lie. ``look_ahead_s`` is how much work schedulers
    grant ahead of its completion, in seconds on each device. ``preparation_s`` stands for what a host does before it
    can enqueue a computation, one after the other. Where ``ray`` names a cluster, hosts are there; the folder, and an
    address that is empty, are found out then.

    ``network_hosts`` says by number which hosts run on hosts of a network: between islands these pass arrays over it.
    ``controllers`` are addresses of Trainyard's controllers, which rank what is sent there; without any, nobody does.
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
    network_hosts: Mapping[int, NetworkHost] = field(default_factory=dict)
    controllers: tuple[str, ...] = ()
    ray: RaySettings | None = None

    def __post_init__(self) -> None:
        names = [client.name for client in self.clients]
        if len(set(names)) < len(names):
            raise ValueError(f"clients: expected each name once, got {', '.join(names)}")
        if self.policy not in POLICIES:
            raise ValueError(f"policy: expected one of {', '.join(POLICIES)}, got {self.policy!r}")
        if self.dispatch not in DISPATCHES:
            raise ValueError(f"dispatch: expected one of {', '.join(DISPATCHES)}, got {self.dispatch!r}")
        if self.ray is not None and self.address.startswith("unix:"):
            raise ValueError(f"address: hosts on other nodes cannot reach {self.address}; expected HOST:PORT")
        if self.network not in NETWORKS:
            raise ValueError(f"network: expected one of {', '.join(NETWORKS)}, got {self.network!r}")
        unknown = self.network_hosts.keys() - range(sum(each.hosts for each in self.islands))
        if unknown:
            raise ValueError(f"network_hosts: there is no host {min(unknown)}")
        if self.ray is not None and self.network_hosts:
            raise ValueError("network_hosts: ray is given too; only one of them says where hosts run")
        if self.controllers and not self.network_hosts:
            raise ValueError("controllers: network_hosts are missing; only what these send is ranked")
        if self.network_hosts and self.network != "shared-memory":
            raise ValueError("network: expected shared-memory, for between network_hosts it is TCP anyway")
        if not self.look_ahead_s > 0:
            raise ValueError(f"look_ahead_s: expected a time above 0, got {self.look_ahead_s}")


def controllers_of(addresses: str) -> tuple[str, ...]:
    """Return the addresses of controllers that are given with commas between. Raises ValueError for what is none."""
    from hostlib.addresses import unique_addresses  # it brings gRPC, which only those need who have a controller

    return unique_addresses([each.strip() for each in addresses.split(",") if each.strip()])
