"""What a profile says of a collective: by PyTorch's ``record_param_comms``, or by the shapes of an operation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workloads.chakra.wire import ChakraError, CollectiveType
from workloads.pytorch_traces.collectives import (
    NOT_COMMUNICATION,
    SIDES,
    collective_type,
    element_bytes,
    given_elements,
    input_bytes,
    plain_name,
)
from workloads.pytorch_traces.nodes import Collective
from workloads.pytorch_traces.profile import Event, Profile, listed_ranks


def described(profile: Profile, events: Sequence[Event]) -> Collective | None:
    """Return the collective that events describe, the last one that does; None: none does."""
    for event in reversed(events):
        found = _by_parameters(profile, event) if "Collective name" in event.arguments else by_shapes(event)
        if found is not None:
            return found
    return None


def _by_parameters(profile: Profile, event: Event) -> Collective | None:
    values = event.arguments
    name = plain_name(str(values["Collective name"]))
    if name in NOT_COMMUNICATION:
        return None
    where = profile.where(event.number)
    size = element_bytes(str(values.get("dtype")))
    inputs, outputs = (values.get(key) for key in ("In msg nelems", "Out msg nelems"))
    if size is None:
        raise ChakraError(f"{where}: its dtype is {str(values.get('dtype'))[:40]!r}, which is unknown")
    if not all(type(count) is int and count >= 0 for count in (inputs, outputs)):
        raise ChakraError(f"{where}: its numbers of elements are {inputs!r} and {outputs!r}")
    assert isinstance(inputs, int)
    assert isinstance(outputs, int)
    group = str(values.get("Process Group Name", ""))
    if name in SIDES:
        peer = values.get("Dst Rank" if name == "send" else "Src Rank")
        if type(peer) is not int:
            raise ChakraError(f"{where}: {name}: the other rank is not recorded; PyTorch 2.5 or later does")
        return Collective(SIDES[name], size * (inputs if name == "send" else outputs), group, peer=peer)
    kind = collective_type(name)
    if kind is None:
        raise ChakraError(f"{where}: its collective is {name[:40]!r}, which is unknown")
    if kind is CollectiveType.BARRIER:
        return Collective(kind, 0, group)
    num_ranks = _num_ranks(profile, values)
    return Collective(kind, size * given_elements(kind, inputs, outputs, num_ranks), group)


def _num_ranks(profile: Profile, values: Mapping[str, Any]) -> int:
    size = values.get("Group size", profile.world_size)
    return size if type(size) is int and size > 0 else 1


def by_shapes(event: Event) -> Collective | None:
    """Return the collective of an operation by its name and the shapes of its inputs; None: it is none."""
    kind = collective_type(plain_name(event.name))
    if kind is None:
        return None
    if kind is CollectiveType.BARRIER:
        return Collective(kind, 0)
    size_bytes = input_bytes(event.arguments)
    return None if size_bytes is None else Collective(kind, size_bytes)


def named_groups(
    profile: Profile, collectives: Iterable[Collective], known: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """Return the ranks of the process groups that collectives name, as far as anything says them.

    A group as large as the job is that of all ranks, whose ranks need not be said.
    """
    groups = {**known, **profile.groups}
    for event in (*profile.gpu, *profile.cpu):
        name = event.arguments.get("Process Group Name")
        if isinstance(name, str) and name not in groups:
            ranks = listed_ranks(event.arguments.get("Process Group Ranks"))
            if ranks:
                groups[name] = ranks
            elif event.arguments.get("Group size") == profile.world_size is not None:
                groups[name] = ()
    named = {each.group for each in collectives}
    return {name: ranks for name, ranks in groups.items() if name in named}
