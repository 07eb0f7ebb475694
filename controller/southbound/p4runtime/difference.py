"""From what a switch holds to what it should hold: the updates, in an order that never breaks forwarding."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from controller.southbound.p4runtime.entries import Entity, EntityKey, Kind, holds_same, key_of

State = Mapping[EntityKey, Entity]
"""What a switch holds, by identity."""


class UpdateKind(Enum):
    """What an update does to its entity."""

    INSERT = auto()
    MODIFY = auto()
    DELETE = auto()


@dataclass(frozen=True, slots=True)
class Update:
    """One update of a Write request."""

    kind: UpdateKind
    entity: Entity


Stage = tuple[Update, ...]
"""Updates that do not depend on one another: a switch may carry out those of one request in any order."""


def state_of(entities: Iterable[Entity]) -> dict[EntityKey, Entity]:
    """Entities by their identity."""
    return {key_of(entity): entity for entity in entities}


def difference(held: State, desired: State) -> tuple[Stage, ...]:
    """The fewest updates that turn ``held`` into ``desired``: make before break.

    What is referred to is written before what refers to it, and deletions come last, the other way round. To flow rules
    nothing refers: all their updates make one stage. The default entry of a table can only be modified, and stays where
    ``desired`` has none.
    """
    writes: defaultdict[Kind, list[Update]] = defaultdict(list)
    deletions: defaultdict[Kind, list[Update]] = defaultdict(list)
    for key, entity in desired.items():
        current = held.get(key)
        if current is None:
            update_kind = UpdateKind.MODIFY if key.kind is Kind.SETTING else UpdateKind.INSERT
            writes[key.kind].append(Update(update_kind, entity))
        elif current is not entity and not holds_same(current, entity):
            writes[key.kind].append(Update(UpdateKind.MODIFY, entity))
    for key, entity in held.items():
        if key not in desired and key.kind is not Kind.SETTING:
            deletions[key.kind].append(Update(UpdateKind.DELETE, entity))
    *kinds, last = Kind
    stages = [writes[kind] for kind in kinds]
    stages.append(writes[last] + deletions[last])
    stages += [deletions[kind] for kind in reversed(kinds)]
    return tuple(tuple(stage) for stage in stages if stage)
