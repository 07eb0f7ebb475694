"""Fabrics from tables in the shape that NetBox's bulk imports take: cables, devices, IP addresses and interfaces.

Columns that NetBox has beside these say nothing here. ``number``, ``gbps``, ``p4runtime`` and others are Trainyard's.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from topologies.imports.draft import Draft
from topologies.imports.tables import Columns, Row, read_table
from topologies.printable import quoted

_INTERFACE = {"dcim.interface", "interface"}
_ALWAYS_IGNORED = {"id", "status", "tenant", "description", "comments", "tags", "owner"}

CABLE_COLUMNS = Columns(
    {"side_a_device", "side_a_name", "side_b_device", "side_b_name"},
    {"side_a_type", "side_b_type", "speed", "gbps"},
    _ALWAYS_IGNORED
    | {"side_a_site", "side_b_site", "side_a_power_panel", "side_b_power_panel", "type", "profile", "bundle"}
    | {"label", "color", "length", "length_unit"},
)
DEVICE_COLUMNS = Columns(
    {"name"},
    {"role", "p4runtime", "device_id", "gnmi", "node_id", "management", "control", "target"},
    _ALWAYS_IGNORED
    | {"manufacturer", "device_type", "platform", "serial", "asset_tag", "site", "location", "rack", "position", "face"}
    | {"parent", "device_bay", "latitude", "longitude", "airflow", "virtual_chassis", "vc_position", "vc_priority"}
    | {"cluster", "config_template", "local_context_data"},
)
ADDRESS_COLUMNS = Columns(
    {"device", "interface"},
    {"address", "mac_address"},
    _ALWAYS_IGNORED
    | {"vrf", "role", "virtual_machine", "fhrp_group", "is_primary", "is_oob", "dns_name", "nat_inside"},
)
INTERFACE_COLUMNS = Columns(
    {"device", "name"},
    {"number", "speed", "gbps", "mac_address"},
    _ALWAYS_IGNORED
    | {"label", "parent", "bridge", "lag", "type", "duplex", "enabled", "mark_connected", "wwn", "vdcs", "mtu"}
    | {"mgmt_only", "mode", "vlan_group", "untagged_vlan", "tagged_vlans", "q_in_q_svlan", "vrf", "poe_mode"}
    | {"poe_type", "rf_role", "rf_channel", "rf_channel_frequency", "rf_channel_width", "tx_power"}
    | {"vlan_translation_policy", "primary_mac_address"},
)
_NUMBERS = ("device_id", "node_id")


@dataclass(frozen=True, slots=True)
class Roles:
    """Which devices are switches and hosts: by the roles that the table of devices gives them, or switches by name.

    Without ``host_roles``, devices that are no switches are hosts. With them, devices of further roles stay out, and
    their cables too.
    """

    switch_roles: frozenset[str] = frozenset()
    host_roles: frozenset[str] = frozenset()
    switches: tuple[str, ...] = ()
    """Patterns of names, such as ``leaf*``."""

    def is_switch(self, name: str, role: str | None) -> bool:
        """Tell whether a device is a switch."""
        return role in self.switch_roles or any(fnmatchcase(name, pattern) for pattern in self.switches)

    def stays_out(self, name: str, role: str | None) -> bool:
        """Tell whether a device is neither a switch nor a host."""
        return bool(self.host_roles) and role not in self.host_roles and not self.is_switch(name, role)


def add_cabling(draft: Draft, cables: Path, devices: Path | None, roles: Roles) -> None:
    """Add the devices and cables of tables; without one of devices, they are those of the cables, in order."""
    rows = [row for row in read_table(cables, CABLE_COLUMNS, draft.problems) if _is_of_interfaces(row)]
    outside: set[str] = set()
    if devices is not None:
        for row in read_table(devices, DEVICE_COLUMNS, draft.problems):
            _add_device(draft, row, roles, outside)
    complete = [row for row in rows if _is_complete(draft, row, CABLE_COLUMNS)]
    for row in complete:
        names = [row.cells[f"side_{side}_device"] for side in "ab"]
        if devices is None:
            for name in names:
                if not draft.knows(name):
                    draft.add_node(name, row.place, is_switch=roles.is_switch(name, None))
        if outside.isdisjoint(names):
            first, second = ((row.cells[f"side_{side}_device"], row.cells[f"side_{side}_name"]) for side in "ab")
            draft.add_cable((first, second), row.place, _gbps(draft, row))


def add_addresses(draft: Draft, paths: Iterable[Path]) -> None:
    """Add addresses of NICs, and their MACs, from tables of IP addresses or of MAC addresses."""
    for path in paths:
        for row in read_table(path, ADDRESS_COLUMNS, draft.problems):
            if row.cells.keys() >= ADDRESS_COLUMNS.required:  # others are those of virtual machines, or of nothing
                end = row.cells["device"], row.cells["interface"]
                _say(draft, end, row, {"address": "address", "mac_address": "mac"})


def add_interfaces(draft: Draft, paths: Iterable[Path]) -> None:
    """Add numbers of ports, speeds and MACs from tables of interfaces."""
    for path in paths:
        for row in read_table(path, INTERFACE_COLUMNS, draft.problems):
            if not _is_complete(draft, row, INTERFACE_COLUMNS):
                continue
            end = row.cells["device"], row.cells["name"]
            _say(draft, end, row, {"mac_address": "mac"})
            if "number" in row.cells:
                draft.say(end, "number", _parsed(draft, row, "number", int), row.place)
            if (gbps := _gbps(draft, row)) is not None:
                draft.say(end, "gbps", gbps, row.place)


def _is_of_interfaces(row: Row) -> bool:
    """Tell whether a cable connects network interfaces: others carry power, or lead to consoles."""
    return all(row.cells.get(f"side_{side}_type", "dcim.interface") in _INTERFACE for side in "ab")


def _add_device(draft: Draft, row: Row, roles: Roles, outside: set[str]) -> None:
    if not _is_complete(draft, row, DEVICE_COLUMNS):
        return
    cells = dict(row.cells)
    name, role = cells.pop("name"), cells.pop("role", None)
    if roles.stays_out(name, role):
        outside.add(name)
        return
    keys: dict[str, Any] = {key: cells[key] for key in sorted(DEVICE_COLUMNS.optional & cells.keys())}
    keys |= {key: _parsed(draft, row, key, int) for key in _NUMBERS if key in keys}
    draft.add_node(name, row.place, is_switch=roles.is_switch(name, role), keys=keys)


def _is_complete(draft: Draft, row: Row, columns: Columns) -> bool:
    missing = sorted(columns.required - row.cells.keys())
    draft.problems += [f"{row.place}: {name}: expected something in this cell" for name in missing]
    return not missing


def _say(draft: Draft, end: tuple[str, str], row: Row, keys: Mapping[str, str]) -> None:
    for column, key in keys.items():
        if column in row.cells:
            draft.say(end, key, row.cells[column].lower() if key == "mac" else row.cells[column], row.place)


def _gbps(draft: Draft, row: Row) -> float | None:
    """Return the speed of a row: ``gbps``, or ``speed`` in kbit/s as in NetBox."""
    given: Sequence[float | None] = [
        _parsed(draft, row, "gbps", float) if "gbps" in row.cells else None,
        _parsed(draft, row, "speed", lambda cell: int(cell) / 1e6) if "speed" in row.cells else None,
    ]
    return next((gbps for gbps in given if gbps is not None), None)


def _parsed(draft: Draft, row: Row, column: str, parse: Callable[[str], float]) -> float | None:
    cell = row.cells[column]
    try:
        return parse(cell)
    except (ValueError, OverflowError):
        draft.problems.append(f"{row.place}: {column}: expected a number, got {quoted(cell)}")
        return None
