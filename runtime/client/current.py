"""The runtime that a script uses without naming it: the one that it connected to last."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from runtime.client.local import LocalRuntime
from runtime.client.session import Runtime
from runtime.client.slices import VirtualDeviceSet
from runtime.ray_objects import cluster_address
from runtime.server.settings import ClientSettings, IslandSettings, Quota, controllers_of
from runtime.substrates.interface import DEFAULT_KIND, NetworkHost
from runtime.substrates.ray_cluster import RaySettings

RuntimeT = TypeVar("RuntimeT", bound=Runtime)

_connected: list[Runtime] = []


def connect(address: str, token: str) -> Runtime:
    """Connect to a server that runs; see ``Runtime``."""
    return _noted(Runtime(address, token))


def local(
    islands: int = 1,
    hosts: int = 1,
    devices: int = 2,
    *,
    policy: str = "fifo",
    weights: Mapping[str, float] | None = None,
    quotas: Mapping[str, Quota] | None = None,
    look_ahead_s: float = 0.02,
    dispatch: str = "parallel",
    preparation_s: float = 0.0,
    device_memory_bytes: int = 1 << 30,
    host_memory_bytes: int = 4 << 30,
    reads: Mapping[str, Sequence[str]] | None = None,
    network: str = "shared-memory",
    mesh: Sequence[int] | None = None,
    kind: str = DEFAULT_KIND,
    network_hosts: Mapping[int, NetworkHost] | None = None,
    controller: str | None = None,
) -> LocalRuntime:
    """Start a runtime on this machine and connect to it; use it as a context manager.

    Args:
        islands: Number of islands, which are called island-0, island-1, …
        hosts: Hosts of each island; each is a process.
        devices: Devices of each host. A device is a thread, or for timers nothing but time.
        policy: How schedulers order computations: ``fifo``, ``shares``, by the weights of clients, or
            ``earliest-need``, by what ``needed_in`` says.
        weights: Names of further clients, with their weights; ``tokens`` has a token for each.
        quotas: What these clients may hold at once, where that is limited.
        reads: Which clients these may read the published arrays of, beside their own.
        look_ahead_s: How much work schedulers grant ahead of its completion, in seconds on each device.
        dispatch: ``parallel`` tells all hosts of a program at once; ``sequential`` waits until a computation is
            enqueued before it tells the hosts of the next one, and is there to be compared with.
        preparation_s: A time that each host takes before it enqueues a computation, standing for its own work.
        device_memory_bytes: What arrays may take on each device. Where they would take more, those that no computation
            uses are spilled to the host, and computations wait.
        host_memory_bytes: What arrays may take that are spilled to a host.
        mesh: The shape of the interconnect of each island, with a place for each device; slices may then have a shape.
        kind: What the devices are called in constraints.
        network: How hosts pass arrays to each other: ``shared-memory``; ``tcp`` as between machines; or ``machines``,
            which finds that they are on one machine and shares memory.
        network_hosts: Which hosts, counted from 0 over all islands, run on hosts of a network, such as network
            namespaces. Hosts of different islands then pass arrays to each other over that network.
        controller: Where Trainyard's controller listens, which ranks what is sent there: HOST:PORT or unix:/PATH, or
            several with commas between.
    """
    settings = _islands(islands, hosts, devices, mesh, device_memory_bytes, host_memory_bytes, kind)
    clients = _clients(weights, quotas, reads)
    ordering = (policy, clients, look_ahead_s, dispatch, preparation_s)
    controllers = () if controller is None else controllers_of(controller)
    return _noted(LocalRuntime(settings, *ordering, network, network_hosts, controllers))


def on_ray(
    address: str | None = None,
    islands: int = 1,
    hosts: int = 1,
    devices: int = 2,
    *,
    strategy: str = "PACK",
    cpus_per_device: float = 1.0,
    resources: Mapping[str, float] | None = None,
    runtime_env: Mapping[str, Any] | None = None,
    patience_s: float = 60.0,
    policy: str = "fifo",
    weights: Mapping[str, float] | None = None,
    quotas: Mapping[str, Quota] | None = None,
    look_ahead_s: float = 0.02,
    device_memory_bytes: int = 1 << 30,
    host_memory_bytes: int = 4 << 30,
    reads: Mapping[str, Sequence[str]] | None = None,
    mesh: Sequence[int] | None = None,
    kind: str = DEFAULT_KIND,
) -> LocalRuntime:
    """Start a runtime whose hosts are actors of a Ray cluster, and connect to it; use it as a context manager.

    The server is a process of this machine, which must be a node of the cluster. Hosts that are lost are replaced.

    Args:
        address: The cluster, as ``ray.init`` takes it: HOST:PORT or ``auto``. By default the one that this program is
            connected to, or the one of ``RAY_ADDRESS``, or the one that runs on this machine.
        islands: Number of islands, each a placement group. They are called island-0, island-1, …
        hosts: Hosts of each island; each is an actor, in a bundle of its own.
        devices: Devices of each host.
        strategy: Where Ray places the hosts of an island: ``PACK``, ``SPREAD``, ``STRICT_PACK`` or ``STRICT_SPREAD``.
        cpus_per_device: What a host takes of Ray's resource ``CPU`` for each of its devices.
        resources: What a host takes beside, of other resources.
        runtime_env: Ray's runtime environment for the hosts, say ``{"working_dir": "."}``.
        patience_s: How long the cluster may take to have room for an island.
        policy: As in ``local``; so is what follows.
        weights: See ``local``.
        quotas: See ``local``.
        look_ahead_s: See ``local``.
        device_memory_bytes: See ``local``.
        host_memory_bytes: See ``local``.
        reads: See ``local``.
        mesh: See ``local``.
        kind: See ``local``.

    Raises:
        OSError: No cluster answers, it has no room, or hosts cannot be started there; the message says which.
    """
    cluster = RaySettings(
        address or cluster_address(), strategy, cpus_per_device, resources or {}, patience_s, runtime_env or {}
    )
    settings = _islands(islands, hosts, devices, mesh, device_memory_bytes, host_memory_bytes, kind)
    clients = _clients(weights, quotas, reads)
    return _noted(LocalRuntime(settings, policy, clients, look_ahead_s, "parallel", 0.0, "machines", ray=cluster))


def _islands(
    islands: int,
    hosts: int,
    devices: int,
    mesh: Sequence[int] | None,
    device_memory_bytes: int,
    host_memory_bytes: int,
    kind: str,
) -> list[IslandSettings]:
    for name, number in (("islands", islands), ("hosts", hosts), ("devices", devices)):
        if number < 1:
            raise ValueError(f"{name}: expected at least one, got {number}")
    of_each = (hosts, devices, None if mesh is None else tuple(mesh), device_memory_bytes, host_memory_bytes, kind)
    return [IslandSettings(f"island-{number}", *of_each) for number in range(islands)]


def _clients(
    weights: Mapping[str, float] | None,
    quotas: Mapping[str, Quota] | None,
    reads: Mapping[str, Sequence[str]] | None,
) -> list[ClientSettings]:
    """Return who may connect beside the program that starts the runtime."""
    limits, readers = quotas or {}, reads or {}
    named = {**dict.fromkeys((*limits, *readers), 1.0), **(weights or {})}
    return [
        ClientSettings(name, secrets.token_hex(), weight, limits.get(name, Quota()), reads=tuple(readers.get(name, ())))
        for name, weight in named.items()
    ]


def make_virtual_device_set() -> VirtualDeviceSet:
    """Return a set of virtual devices of the runtime that was connected to last. Raises ValueError if there is none."""
    for runtime in reversed(_connected):
        if runtime.is_open:
            return runtime.make_virtual_device_set()
    raise ValueError("there is no runtime: start one with runtime.local(), or connect to one with runtime.connect()")


def _noted(runtime: RuntimeT) -> RuntimeT:
    _connected[:] = [each for each in _connected if each.is_open]
    _connected.append(runtime)
    return runtime
