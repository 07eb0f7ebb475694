"""What one switch is to hold: base entries, rules, and what an earlier controller has left. Pure."""

from collections.abc import Set
from typing import Generic

from controller.southbound.difference import difference
from controller.southbound.states import RULES, EntryKey, EntryT, Meaning, Stage, State, without_levels


class DesiredState(Generic[EntryT]):
    """The desired entries of a switch, and the updates to them.

    Rules that the switch held at the first connection stay until ``keeps_found`` is False, so that a controller that
    has just started deletes nothing; a new rule in the place of one replaces it at once. A neighbour that a switch held
    in the place of a base entry in ``unknown_neighbours`` stays until ``set_neighbours`` says otherwise.

    Attributes:
        flows: The rules.
        dead_next_hops: Rules found at the first connection that steer to one of these are deleted.
        keeps_found: Whether what was found at the first connection, and not written since, stays.
        serves_levels: Whether marked packets have their levels.
    """

    def __init__(self, meaning: Meaning[EntryT], base: State[EntryT], unknown_neighbours: State[EntryT]) -> None:
        self.flows: State[EntryT] = {}
        self.dead_next_hops: Set[int] = frozenset()
        self.keeps_found = True
        self.serves_levels = True
        self._meaning = meaning
        self._unknown_neighbours = unknown_neighbours
        self._base = base
        self._neighbours: State[EntryT] = {}
        self._found: frozenset[EntryKey] | None = None

    @property
    def neighbours(self) -> State[EntryT]:
        """The entries that stand in the place of base entries because a neighbour is known."""
        return self._neighbours

    @property
    def base(self) -> State[EntryT]:
        """The base entries that the switch is to have."""
        return self._base if self.serves_levels else without_levels(self._base)

    def set_base(self, base: State[EntryT]) -> None:
        """Have other base entries, with the same neighbours."""
        self._base = {**base, **self._neighbours}

    def rebase(self, base: State[EntryT], neighbours: State[EntryT], unknown_neighbours: State[EntryT]) -> None:
        """Have other base entries and neighbours: the switch has other cables."""
        self._neighbours, self._unknown_neighbours = neighbours, unknown_neighbours
        self.set_base(base)

    def set_neighbours(self, neighbours: State[EntryT], plain: State[EntryT]) -> None:
        """Have these in the place of base entries; those of ``plain`` come back that have no replacement."""
        back = {key: plain[key] for key in self._neighbours.keys() - neighbours.keys()}
        self._base, self._neighbours = {**self._base, **back, **neighbours}, neighbours

    def from_found(self, found: State[EntryT]) -> tuple[State[EntryT], tuple[Stage[EntryT], ...]]:
        """Return the rules that the switch is to have, and the updates to them from what was read."""
        if self._found is None:
            self._found = frozenset(key for key in found if key.kind in RULES)
            self._keep_neighbours(found)
        flows = self._desired_flows(found)
        return flows, difference(found, {**self.base, **flows}, self._meaning.holds_same)

    def from_held(
        self, held: State[EntryT], held_base: State[EntryT]
    ) -> tuple[State[EntryT], tuple[Stage[EntryT], ...]]:
        """Return the same from the rules and base entries that it is known to hold."""
        flows = self._desired_flows(held)
        stages = difference(held, flows, self._meaning.holds_same)
        base = self.base
        if base is not held_base:
            stages += difference(held_base, base, self._meaning.holds_same)
        return flows, stages

    def _keep_neighbours(self, found: State[EntryT]) -> None:
        """Take over what a controller before has learned, so that hosts are reached without a break."""
        kept = {
            key: found[key]
            for key, unknown in self._unknown_neighbours.items()
            if key in found and self._meaning.is_known_neighbour(found[key], unknown)
        }
        self._neighbours = kept | dict(self._neighbours)
        self._base = {**self._base, **self._neighbours}

    def _desired_flows(self, held: State[EntryT]) -> State[EntryT]:
        found = self._found if self.keeps_found and self._found else ()
        # In the order of what is held, as the order of a set differs from process to process.
        kept = {
            key: entry
            for key, entry in held.items()
            if key in found and self._meaning.next_hop_of(entry) not in self.dead_next_hops
        }
        return kept | dict(self.flows)
