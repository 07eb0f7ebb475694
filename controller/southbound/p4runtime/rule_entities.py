"""The entities that carry out the rules of switches; those of rules that stay are not made again."""

from collections.abc import Mapping, Sequence

from controller.rules.flow_rules import FlowRule
from controller.rules.job_rules import JobRule
from controller.southbound.p4runtime.entries import Entity, flow_entry, job_entry, key_of, without_unknown_next_hop
from controller.southbound.p4runtime.states import State
from controller.southbound.states import EntryKey
from topologies.fabric import Fabric


class RuleEntities:
    """Remembers the entities of the rules that each switch had last."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._entries: dict[str, dict[FlowRule | JobRule, tuple[EntryKey, Entity]]] = {}
        self._next_hops: dict[str, Mapping[int, int] | None] = {}

    def state(self, switch: str, rules: Sequence[FlowRule | JobRule], next_hops: Mapping[int, int] | None) -> State:
        """Return the rules of a switch as entities.

        ``next_hops`` has those of the switch by link, where somebody else has numbered them. Rules that need others are
        left out.
        """
        is_same = next_hops == self._next_hops.get(switch)
        known = self._entries.get(switch, {}) if is_same else {}
        self._next_hops[switch] = next_hops
        self._entries[switch] = entries = {}
        for rule in rules:
            entry = known.get(rule)
            if entry is None:
                entity = self._entity(rule, next_hops)
                if entity is None:
                    continue
                entry = key_of(entity), entity
            entries[rule] = entry
        return dict(entries.values())

    def _entity(self, rule: FlowRule | JobRule, next_hops: Mapping[int, int] | None) -> Entity | None:
        if isinstance(rule, JobRule):
            return job_entry(rule)
        possible = rule if next_hops is None else without_unknown_next_hop(rule, next_hops)
        return None if possible is None else flow_entry(possible, self._fabric, next_hops)
