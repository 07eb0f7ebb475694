"""Actions and action profiles of a P4Info."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from finsy.proto import p4i

from emulator.p4runtime.objects_by_id import index_by_id
from emulator.p4runtime.texts import Texts


@dataclass(frozen=True)
class Parameter:
    """One parameter that the control plane gives to an action; see MatchField for ``is_translated``.

    The compiled action does not have it if ``is_dropped``, because it does not use it.
    """

    id: int
    name: str
    width_bits: int
    action: str
    is_translated: bool = False
    is_dropped: bool = False
    texts: Texts | None = field(default=None, compare=False)

    @cached_property
    def place(self) -> str:
        """Name of the parameter in error messages."""
        return f"action {self.action}, parameter {self.name}"


@dataclass(frozen=True)
class Action:
    """An action; ``parameters`` are in the program's order."""

    id: int
    name: str
    parameters: tuple[Parameter, ...]

    @cached_property
    def parameter_ids(self) -> frozenset[int]:
        """Ids of all parameters."""
        return frozenset(parameter.id for parameter in self.parameters)


@dataclass(frozen=True, slots=True)
class Profile:
    """An action profile, or an action selector if ``has_selector``.

    The size of a group is the sum of its weights, or the number of its members if ``counts_members``. No weight may
    exceed ``max_weight`` (0: any may).
    """

    id: int
    name: str
    has_selector: bool
    size: int
    max_group_size: int
    table_ids: tuple[int, ...]
    counts_members: bool = False
    max_weight: int = 0

    def group_size(self, weights: Collection[int]) -> int:
        """Return the size of a group of members with these weights."""
        return len(weights) if self.counts_members else sum(weights)


def read_action(message: p4i.Action, translated: Mapping[str, Texts | None]) -> Action:
    """Return an action of a P4Info; ``translated`` has the texts of translated types, or None for numbers, by name."""
    name = message.preamble.name
    parameters = index_by_id(
        (
            Parameter(
                *(parameter.id, parameter.name, parameter.bitwidth, name),
                is_translated=parameter.type_name.name in translated,
                texts=translated.get(parameter.type_name.name),
            )
            for parameter in message.params
        ),
        f"action {name}",
    )
    return Action(message.preamble.id, name, tuple(parameters.values()))


def read_profile(message: p4i.ActionProfile) -> Profile:
    """Return an action profile of a P4Info."""
    name = message.preamble.name
    return Profile(
        message.preamble.id,
        name,
        message.with_selector,
        message.size,
        message.max_group_size,
        tuple(message.table_ids),
        message.HasField("sum_of_members"),
        1 if message.weights_disallowed else message.sum_of_members.max_member_weight,
    )
