"""The entries of P4 switches as states that a writer keeps, and updates of them."""

from collections.abc import Iterable

from controller.southbound import difference as differences
from controller.southbound import states
from controller.southbound.p4runtime.entries import Entity, holds_same, is_known_neighbour, key_of, next_hop_of
from controller.southbound.states import EntryKey, Meaning

State = states.State[Entity]
Update = states.Update[Entity]
Stage = states.Stage[Entity]

MEANING: Meaning[Entity] = Meaning(key_of, holds_same, next_hop_of, is_known_neighbour)


def state_of(entities: Iterable[Entity]) -> dict[EntryKey, Entity]:
    """Return entities by identity."""
    return MEANING.state_of(entities)


def difference(held: State, desired: State) -> tuple[Stage, ...]:
    """Return the fewest updates that turn ``held`` into ``desired``; see ``controller.southbound.difference``."""
    return differences.difference(held, desired, holds_same)
