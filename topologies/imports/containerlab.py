"""Fabrics from containerlab's topology files: nodes with their kinds, and links in the brief and the extended format.

What ``exec`` runs in nodes tells addresses, as ``ip address add 192.168.7.11/26 dev eth1``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from topologies.documents import DocumentError, read_document
from topologies.files import shown_path
from topologies.imports.draft import Draft, End
from topologies.problems import Location, Problem, as_list, as_mapping, place

HOST_KINDS = ("linux",)
_UNCONTROLLED_KINDS = ("bridge", "ovs-bridge", "host")
_ADDING = re.compile(r"\bip\s+(?:-\S+\s+)*a(?:ddr(?:ess)?)?\s+(?:add|replace)\s+(\S+)\s+dev\s+([^\s;&'\"]+)")


def add_lab(draft: Draft, path: Path, host_kinds: Sequence[str] = HOST_KINDS) -> None:
    """Add the nodes and links of a lab. Nodes of ``host_kinds`` are hosts, and all others switches."""
    try:
        document = read_document(path)
    except DocumentError as error:
        draft.problems += error.messages
        return
    draft.problems += document.messages(document.problems)
    _Lab(draft, path, as_mapping(as_mapping(document.contents).get("topology")), frozenset(host_kinds)).add()


class _Lab:
    def __init__(self, draft: Draft, path: Path, topology: Mapping[str, Any], host_kinds: frozenset[str]) -> None:
        self._draft = draft
        self._path = path
        self._topology = topology
        self._host_kinds = host_kinds

    def add(self) -> None:
        nodes, links = as_mapping(self._topology.get("nodes")), as_list(self._topology.get("links"))
        for key, found in (("nodes", nodes), ("links", links)):
            if not found:
                self._refuse((key,), "expected at least one, there is none")
        for name, node in nodes.items():
            self._add_node(name, as_mapping(node))
        for position, link in enumerate(links):
            self._add_link(as_mapping(link), ("links", position))

    def _add_node(self, name: str, node: Mapping[str, Any]) -> None:
        at: Location = ("nodes", name)
        kind = self._inherited(node, "kind")
        if not isinstance(kind, str):
            self._refuse((*at, "kind"), "missing; neither the node nor its group nor defaults has one")
        elif kind in _UNCONTROLLED_KINDS and kind not in self._host_kinds:
            self._refuse((*at, "kind"), "expected a host, or a switch that can be controlled", kind)
        management = node.get("mgmt-ipv4")
        keys = {} if management is None else {"management": management}
        self._draft.add_node(name, self._place(at), is_switch=kind not in self._host_kinds, keys=keys)
        for position, command in enumerate(as_list(node.get("exec"))):
            for address, interface in _ADDING.findall(str(command)):
                self._draft.say((name, interface), "address", address, self._place((*at, "exec", position)))

    def _inherited(self, node: Mapping[str, Any], key: str) -> object:
        group = as_mapping(as_mapping(self._topology.get("groups")).get(str(node.get("group"))))
        defaults = as_mapping(self._topology.get("defaults"))
        return next((each[key] for each in (node, group, defaults) if each.get(key) is not None), None)

    def _add_link(self, link: Mapping[str, Any], at: Location) -> None:
        if (kind := link.get("type", "veth")) != "veth":
            self._refuse((*at, "type"), "expected veth, a link between two nodes", str(kind))
            return
        given = as_list(link.get("endpoints"))
        if len(given) != 2:
            self._refuse((*at, "endpoints"), f"expected two ends, got {len(given)}")
            return
        ends = [self._end(end, (*at, "endpoints", side)) for side, end in enumerate(given)]
        first, second = ends
        if first is None or second is None:
            return
        self._draft.add_cable((first, second), self._place(at))
        # The brief format has a list of addresses beside its list of ends.
        for end, address in zip(ends, as_list(link.get("ipv4")), strict=False):
            if end is not None and address:
                self._draft.say(end, "address", address, self._place((*at, "ipv4")))

    def _end(self, end: object, at: Location) -> End | None:
        """Return the node and interface of an end, after saying what else the extended format tells there."""
        if isinstance(end, str):
            node, _, interface = end.partition(":")
        else:
            node, interface = (as_mapping(end).get(key) for key in ("node", "interface"))  # type: ignore[assignment]
        if not (isinstance(node, str) and isinstance(interface, str) and node and interface):
            self._refuse(at, "expected a node and its interface, as leaf:eth1")
            return None
        for key, value in self._keys_of(as_mapping(end)):
            self._draft.say((node, interface), key, value, self._place(at))
        return node, interface

    @staticmethod
    def _keys_of(end: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        for key, ours in (("mac", "mac"), ("ipv4", "address")):
            if end.get(key):
                yield ours, end[key]

    def _place(self, location: Location) -> str:
        return f"{shown_path(self._path)}: {place(('topology', *location), {'topology': self._topology})}"

    def _refuse(self, location: Location, message: str, given: str | None = None) -> None:
        self._draft.problems.append(f"{self._place(location)}: {Problem((), message, given)}")
