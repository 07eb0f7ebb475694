"""Executors as actors of a Ray cluster. It needs the extra ``ray``, which is imported where a cluster is used.

An island is a placement group, with a bundle for each of its hosts. The server's process is a driver of the cluster: if
it dies, Ray ends the actors and removes the placement groups.
"""

import json
import logging
import os
import re
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

from runtime.codec import plain_fields
from runtime.substrates.interface import HostSettings, SubstrateError
from runtime.substrates.local import module_environment
from runtime.substrates.ray_host import RayHost, at_address

_LOG = logging.getLogger(__name__)

STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
"""How Ray places the hosts of an island: on few nodes, on many, and whether it may do otherwise."""

_ERROR = re.compile(r"[\w.]*(?:Error|Exception): ")
_CONNECT_S = 10.0
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class RaySettings:
    """Which Ray cluster, and what a host takes there.

    ``address`` is as ``ray.init`` takes it, HOST:PORT or ``auto``. A host takes ``cpus_per_device`` for each of its
    devices, and ``resources`` beside. Where the cluster has no room for the hosts of an island after ``patience_s``, it
    is given up. ``runtime_env`` is Ray's.
    """

    address: str = "auto"
    strategy: str = "PACK"
    cpus_per_device: float = 1.0
    resources: Mapping[str, float] = field(default_factory=dict)
    patience_s: float = 60.0
    runtime_env: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.address.startswith("ray://"):
            raise ValueError(
                "address: executors cannot reach a client of Ray; start the program on a node of the cluster"
            )
        if self.strategy not in STRATEGIES:
            raise ValueError(f"strategy: expected one of {', '.join(STRATEGIES)}, got {self.strategy!r}")
        if not self.cpus_per_device > 0:
            raise ValueError(f"cpus_per_device: expected a number above 0, got {self.cpus_per_device}")
        if "CPU" in self.resources:
            raise ValueError("resources: CPU: cpus_per_device says it")
        for name, amount in self.resources.items():
            if not amount > 0:
                raise ValueError(f"resources: {name}: expected a number above 0, got {amount}")
        if not self.patience_s > 0:
            raise ValueError(f"patience_s: expected a time above 0, got {self.patience_s}")

    def bundle(self, devices: int) -> dict[str, float]:
        """Return what a host with so many devices takes."""
        return {"CPU": devices * self.cpus_per_device, **self.resources}


@dataclass(eq=False, slots=True)
class _Group:
    """A placement group. It is given up at ``until_s``, unless there is room for it by then."""

    name: str
    placement: Any
    devices: tuple[int, ...]
    stays: bool
    until_s: float
    is_there: bool = False
    free: set[int] = field(default_factory=set)


@dataclass(eq=False, slots=True)
class _Host:
    """An actor; ``run`` is the reference to what ends with its executor, and ``is_told`` whether that was told."""

    number: int
    group: _Group
    index: int
    actor: Any
    run: Any
    is_told: bool = False


class RaySubstrate:
    """Starts executors in a Ray cluster. ``islands`` says how many devices each host of an island has.

    Raises SubstrateError where there is no Ray, or no cluster answers.
    """

    def __init__(self, settings: RaySettings, islands: Mapping[str, Sequence[int]]) -> None:
        self._settings = settings
        self._ray = _joined(settings)
        self.address = at_address(self._ray.util.get_node_ip_address())
        """Where a server on this node can be reached from others."""
        self.folder = f"@trainyard-{secrets.token_hex(8)}"
        """By which hosts find each other for collectives: a name, and not a folder."""
        self._remote = self._ray.remote(RayHost)
        self._lock = Lock()
        self._hosts: dict[int, _Host] = {}
        self._group_numbers = count()
        self._groups = [self._new_group(name, devices, stays=True) for name, devices in islands.items()]
        self._has_ended = Event()
        self._on_end: Callable[[int, str], None] = lambda _host, _why: None
        self._thread = Thread(target=self._watch, name="ray-substrate", daemon=True)

    def watch(self, on_end: Callable[[int, str], None]) -> None:
        """Call back, in a thread, when an executor has ended or cannot be started, with why.

        Its place is free once ``kill`` or ``lost`` is called.
        """
        self._on_end = on_end
        self._thread.start()

    def spawn(self, settings: HostSettings) -> None:
        """Start the executor of a host, in a free place of its island if there is one. Raises SubstrateError."""
        with self._lock:
            if self._has_ended.is_set():
                return
            try:
                group, index = self._place(settings.island, settings.devices)
                try:
                    self._spawn(settings, group, index)
                except BaseException:
                    self._free(group, index)
                    raise
            except (self._ray.exceptions.RayError, ValueError, RuntimeError) as error:
                raise SubstrateError(f"host {settings.host}: {_reason(error)}") from None

    def _spawn(self, settings: HostSettings, group: _Group, index: int) -> None:
        amounts = self._settings.bundle(settings.devices)
        scheduled = self._ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
            group.placement, placement_group_bundle_index=index
        )
        actor = self._remote.options(
            name=f"{self.folder}/host-{settings.host}",
            num_cpus=amounts.pop("CPU"),
            num_gpus=amounts.pop("GPU", 0.0),
            memory=amounts.pop("memory", None),
            resources=amounts,
            max_restarts=0,
            scheduling_strategy=scheduled,
        ).remote()
        run = actor.run.remote(json.dumps(settings, default=plain_fields))
        self._hosts[settings.host] = _Host(settings.host, group, index, actor, run)

    def kill(self, host: int) -> None:
        """End the executor of a host at once; its place is free."""
        with self._lock:
            found = self._hosts.pop(host, None)
            if found is not None:
                self._end(found)

    def lost(self, host: int) -> bool:
        """Take note that a host was lost; return whether another one is to take its place."""
        with self._lock:
            found = self._hosts.pop(host, None)
            if found is not None:
                self._end(found)
            return found is not None and found.group.stays and not self._has_ended.is_set()

    def close(self) -> None:
        """End all executors, and give back what they have taken."""
        self._has_ended.set()
        if self._thread.is_alive():
            self._thread.join(_CONNECT_S)
        with self._lock:
            for each in self._hosts.values():
                self._end(each)
            for group in self._groups:
                self._remove(group)
        with suppress(Exception):  # a cluster that has gone has nothing to be removed
            RayHost.forget(self.folder)
        self._ray.shutdown()

    def _new_group(self, island: str, devices: Sequence[int], *, stays: bool) -> _Group:
        name = f"{self.folder}/{island}-{next(self._group_numbers)}"
        bundles = [self._settings.bundle(each) for each in devices]
        placement = self._ray.util.placement_group(bundles, strategy=self._settings.strategy, name=name)
        until_s = monotonic() + self._settings.patience_s
        return _Group(island, placement, tuple(devices), stays, until_s, free=set(range(len(devices))))

    def _place(self, island: str, devices: int) -> tuple[_Group, int]:
        """Return a free place for a host of so many devices, where there is none in a group of its own."""
        for group in self._groups:
            for index in sorted(group.free):
                if group.name == island and group.devices[index] == devices:
                    group.free.remove(index)
                    return group, index
        group = self._new_group(island, (devices,), stays=False)
        group.free.clear()
        self._groups.append(group)
        return group, 0

    def _end(self, host: _Host) -> None:
        with suppress(Exception):  # Ray knows that it is dead, or is dead itself
            self._ray.kill(host.actor, no_restart=True)
        self._free(host.group, host.index)

    def _free(self, group: _Group, index: int) -> None:
        """Let another host have a place, or give it back to the cluster."""
        if group.stays:
            group.free.add(index)
        else:
            self._groups.remove(group)
            self._remove(group)

    def _remove(self, group: _Group) -> None:
        with suppress(Exception):
            self._ray.util.remove_placement_group(group.placement)

    # In the thread

    def _watch(self) -> None:
        is_said = False
        while not self._has_ended.wait(_LOOK_S):
            try:
                self._look()
            except self._ray.exceptions.RayError:
                pass  # Ray does not answer; connections still say what ends
            except Exception:
                if not is_said:
                    _LOG.exception("a look at the Ray cluster failed; the next ones may")
                is_said = True

    def _look(self) -> None:
        with self._lock:
            runs = {each.run: each for each in self._hosts.values() if not each.is_told}
            waiting = [each for each in self._groups if not each.is_there]
        ended, _ = self._ray.wait(list(runs), num_returns=len(runs), timeout=0) if runs else ((), ())
        for run in ended:
            self._tell(runs[run], self._why(run))
        for group in waiting:
            group.is_there = group.placement.wait(0)
            if not group.is_there and monotonic() > group.until_s:
                self._give_up(group, [each for each in runs.values() if each.group is group])

    def _give_up(self, group: _Group, hosts: Sequence[_Host]) -> None:
        group.until_s = float("inf")
        bundles = [self._settings.bundle(each) for each in group.devices]
        wanted, available = ", ".join(map(_text, bundles)), self._ray.available_resources()
        free = _text({name: available.get(name, 0) for name in bundles[0]})
        why = f"the cluster has no room for {group.name} ({self._settings.strategy}: {wanted}); free are {free}"
        for each in hosts:
            self._tell(each, why)

    def _tell(self, host: _Host, why: str) -> None:
        host.is_told = True
        self._on_end(host.number, why)

    def _why(self, run: Any) -> str:
        try:
            self._ray.get(run)
        except self._ray.exceptions.RayError as error:
            return _reason(error)
        return "its executor has ended"


def _joined(settings: RaySettings) -> Any:
    """Join a cluster, and return Ray's module."""
    try:
        import ray
        import ray.util.scheduling_strategies
    except ModuleNotFoundError as error:
        raise SubstrateError(f"a Ray cluster needs Ray, as pip install '.[ray]' brings it: {error}") from None
    address = settings.address
    try:
        if address == "auto":
            address = replace(settings, address=os.environ.get("RAY_ADDRESS") or "auto").address
        host, colon, port = address.rpartition(":")
        if colon and port.isdecimal():  # Ray would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
        ray.init(address=address, logging_level="WARNING", runtime_env=_environment(settings.runtime_env))
    except (OSError, RuntimeError, ValueError) as error:
        raise SubstrateError(f"{address}: no Ray cluster answers: {error}") from None
    return ray


def _environment(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment of hosts, which look for modules where this process does if nothing else is asked."""
    return {**asked, "env_vars": {"PYTHONPATH": module_environment()["PYTHONPATH"], **asked.get("env_vars", {})}}


def _reason(error: Exception) -> str:
    """Return why an actor has died, which Ray says in many lines: the last error that they name, or the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    return errors[-1] if errors else lines[0] if lines else type(error).__name__


def _text(amounts: Mapping[str, float]) -> str:
    """Return resources for people."""
    return " and ".join(f"{amount:g} {name}" for name, amount in amounts.items())
