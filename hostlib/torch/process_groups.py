"""Process groups: their ranks and roles, and which TCP connections each of them has opened."""

import functools
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d

from hostlib.torch import nccl
from hostlib.torch.sockets import Endpoints, connections

_LOG = logging.getLogger(__name__)

_ROLES_OF_DESCRIPTIONS = {
    "dp": "data",
    "fsdp": "sharded",
    "tp": "tensor",
    "pp": "pipeline",
    "ep": "expert",
    "cp": "context",
}
_ROLES_OF_OPERATIONS = (
    ("expert", ("alltoall_base_", "alltoall_")),
    ("pipeline", ("send", "recv_", "recv_any_source_")),
    ("sharded", ("_reduce_scatter_base_", "reduce_scatter_tensor_coalesced_", "_allgather_base_")),
    ("data", ("allreduce_", "allreduce_coalesced_")),
)


@dataclass(frozen=True, slots=True)
class Group:
    """A process group: its name, its description, its ranks in the job in their order in the group, its back end."""

    name: str
    description: str
    ranks: tuple[int, ...]
    backend: str


def known_groups() -> dict[str, Group]:
    """Return the process groups that this process is in, by name."""
    found: dict[str, Group] = {}
    for group, ranks in list(distributed_c10d._world.pg_group_ranks.items()):
        if not isinstance(group, dist.ProcessGroup):
            continue  # it stands for groups that this process is not in
        name = str(group.group_name)
        backend = str(distributed_c10d._world.pg_map.get(group, ("",))[0]).lower()
        ordered = tuple(sorted(ranks, key=ranks.__getitem__))
        found[name] = Group(name, str(getattr(group, "group_desc", "") or ""), ordered, _backend_of(backend))
    return found


def _backend_of(backend: str) -> str:
    """Return the one that carries the most where a group has several, as in ``cpu:gloo,cuda:nccl``."""
    if ":" not in backend:
        return backend
    devices = dict(part.split(":", 1) for part in backend.split(","))
    return devices.get("cuda") or devices.get("cpu") or backend


ROLES = ("data", "sharded", "tensor", "pipeline", "expert", "context", "other")


def role_of(group: Group, operations: Mapping[str, int]) -> str:
    """Return what a group does: by the name that a device mesh gave it, else by its operations and their bytes."""
    described = group.description.removeprefix("mesh_")
    for word, role in _ROLES_OF_DESCRIPTIONS.items():
        if described == word or described.startswith(f"{word}_"):
            return role
    for role, names in _ROLES_OF_OPERATIONS:
        if any(operations.get(name) for name in names):
            return role
    return "other"


class GroupWatch:
    """Hears of process groups that are made and destroyed, and which connections each has opened meanwhile.

    Args:
        on_made: Called when a group was made.
        on_destroyed: Called before the default group is destroyed.
        level: Returns the level at which the job sends; None while that is not known. Communicators of NCCL that are
            made ask for it.

    Attributes:
        roles: What groups are for, by name, where the job has said so.
    """

    def __init__(
        self, on_made: Callable[[], None], on_destroyed: Callable[[], None], level: Callable[[], int | None]
    ) -> None:
        self.roles: dict[str, str] = {}
        self._level = level
        self._traffic_classes = nccl.traffic_classes()
        self._of_group: dict[str, frozenset[Endpoints]] = {}
        self._on_made = on_made
        self._on_destroyed = on_destroyed
        self._plain = {
            name: (
                getattr(distributed_c10d, name),
                [module for module in (distributed_c10d, dist) if hasattr(module, name)],
            )
            for name in ("_new_process_group_helper", "destroy_process_group")
            if hasattr(distributed_c10d, name)
        }
        for name, watched in (("_new_process_group_helper", self._make), ("destroy_process_group", self._destroy)):
            if name in self._plain:
                plain, modules = self._plain[name]
                for module in modules:
                    setattr(module, name, functools.partial(watched, plain))

    def close(self) -> None:
        """Hear no more."""
        for name, (plain, modules) in self._plain.items():
            for module in modules:
                setattr(module, name, plain)

    def opened_by(self, name: str) -> frozenset[Endpoints]:
        """Return the connections that a group has opened while it was made; none where that was not seen."""
        return self._of_group.get(name, frozenset())

    def unowned(self) -> frozenset[Endpoints]:
        """Return the connections of this process that no group is known to have opened."""
        return connections() - frozenset().union(*self._of_group.values())

    def _make(self, plain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        before = connections()
        self._ask_for_level(plain, args, kwargs)
        made = plain(*args, **kwargs)
        group = made[0] if isinstance(made, tuple) else made
        if isinstance(group, dist.ProcessGroup):
            self._of_group[group.group_name] = connections() - before
            self._on_made()
        return made

    def _ask_for_level(self, plain: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Put the job's level into the options of a communicator of NCCL."""
        level = self._level()
        if self._traffic_classes is None or level is None:
            return
        try:
            given = inspect.signature(plain).bind(*args, **kwargs).arguments
            if "nccl" in str(given.get("backend", "")).lower():
                options = given.get("backend_options")
                if options is None:
                    options = kwargs["backend_options"] = nccl.options_of_a_communicator()
                self._traffic_classes.ask(options, level)
        except Exception as error:
            _LOG.warning("a communicator of NCCL gets no traffic class: %s", error)

    def _destroy(self, plain: Callable[..., Any], group: Any = None) -> None:
        if group is None or group == dist.group.WORLD:
            self._on_destroyed()
            self._of_group.clear()
        plain(group)
