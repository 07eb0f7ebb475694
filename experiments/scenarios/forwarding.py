"""What the switches of a simulated fabric do with a flow's packets: the one rule for what is down."""

from dataclasses import dataclass
from functools import cached_property

from controller.rules.flow_rules import FlowRulesBySwitch
from topologies.addressing import FiveTuple
from topologies.ecmp import flow_crc, hash_of_crc
from topologies.fabric import Path
from topologies.routing import Routing


@dataclass(frozen=True)
class Forwarding:
    """Base ``routing`` and ``rules`` as they were written last, and the links that are ``down`` now."""

    routing: Routing
    rules: FlowRulesBySwitch
    down: frozenset[int] = frozenset()

    def path(self, five_tuple: FiveTuple) -> Path | None:
        """The links that a flow's packets take; None where they are lost.

        A switch leads them where its rule for the flow says, into a dead port too. Without a rule it takes the hash's
        choice of the members that base routing has, but for those whose port is down: it knows only its own ports.
        """
        fabric, down = self.routing.fabric, self.down
        destination = fabric.nic_by_address[five_tuple.destination_address]
        crc = flow_crc(five_tuple)
        path = [fabric.nic_by_address[five_tuple.source_address].link]
        while path[-1] not in down and len(path) <= len(fabric.switches) + 1:
            node = fabric.links[path[-1]].destination
            if node == destination.host:
                return tuple(path)
            link = self._led.get((five_tuple, node))
            if link is None:
                members = [member for member in self.routing.next_links(node, destination) if member not in down]
                if not members:
                    return None
                link = members[hash_of_crc(crc, self.routing.hash_multipliers[node]) % len(members)]
            path.append(link)
        return None

    @cached_property
    def _led(self) -> dict[tuple[FiveTuple, str], int]:
        return {
            (rule.five_tuple, switch): rule.next_link
            for switch, rules in self.rules.items()
            for rule in rules
            if rule.next_link is not None
        }
