"""Compute the updates from what a switch holds to what it should hold, in an order that never breaks forwarding."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from controller.southbound.p4runtime.entries import Entity, EntityKey, EntityKind, holds_same, key_of

State = Mapping[EntityKey, Entity]
"""Entities of a switch by identity."""


class UpdateKind(Enum):
    """The effect of an update on its entity."""

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
    """Return entities by identity."""
    return {key_of(entity): entity for entity in entities}


def difference(held: State, desired: State) -> tuple[Stage, ...]:
    """Return the fewest updates that turn ``held`` into ``desired``, make before break.

    Entities are written before those that refer to them, and deletions come last, in reverse order. Nothing refers to
    flow rules, so all their updates make one stage. The default entry of a table can only be modified, and stays where
    ``desired`` has none.
    """
    writes: defaultdict[EntityKind, list[Update]] = defaultdict(list)
    deletions: defaultdict[EntityKind, list[Update]] = defaultdict(list)
    for key, entity in desired.items():
        current = held.get(key)
        if current is None:
            update_kind = UpdateKind.MODIFY if key.kind is EntityKind.SETTING else UpdateKind.INSERT
            writes[key.kind].append(Update(update_kind, entity))
        elif current is not entity and not holds_same(current, entity):
            writes[key.kind].append(Update(UpdateKind.MODIFY, entity))
    for key, entity in held.items():
        if key not in desired and key.kind is not EntityKind.SETTING:
            deletions[key.kind].append(Update(UpdateKind.DELETE, entity))
    *kinds, last = EntityKind
    stages = [writes[kind] for kind in kinds]
    stages.append(writes[last] + deletions[last])
    stages += [deletions[kind] for kind in reversed(kinds)]
    return tuple(tuple(stage) for stage in stages if stage)
