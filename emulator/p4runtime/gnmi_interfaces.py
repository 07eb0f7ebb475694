"""Ports of a switch as a tree of OpenConfig interfaces, whose leaves gNMI reads and sets."""

from collections.abc import Iterable, Iterator
from enum import Enum

from finsy.proto import gnmi

from emulator.p4runtime.errors import invalid_argument, not_found
from emulator.p4runtime.port_requests import interface_name
from emulator.ports import PortChange
from emulator.switch import EmulatedSwitch

Elements = tuple[tuple[str, str | None], ...]
"""Elements of a path with their key ``name``; a name or key ``*`` and a key None match anything."""


class Leaf(Enum):
    """Leaf of an interface: its container and its name."""

    NAME = "state", "name"
    IF_INDEX = "state", "ifindex"
    ENABLED = "state", "enabled"
    ADMIN_STATUS = "state", "admin-status"
    OPER_STATUS = "state", "oper-status"
    WANTED = "config", "enabled"


_CHANGING = {
    PortChange.UP: (Leaf.OPER_STATUS,),
    PortChange.ENABLED: (Leaf.WANTED, Leaf.ENABLED, Leaf.ADMIN_STATUS),
}


def current(switch: EmulatedSwitch, wanted: Iterable[Elements]) -> Iterator[gnmi.Update]:
    """Return the leaves at or below any of the wanted paths, in order of the ports, each once."""
    patterns = tuple(wanted)
    for port in switch.ports:
        for leaf in Leaf:
            yield from _selected(switch, port, leaf, patterns)


def changed(switch: EmulatedSwitch, wanted: Iterable[Elements], port: int, change: PortChange) -> Iterator[gnmi.Update]:
    """Return the wanted leaves of a port that a change of it changes."""
    patterns = tuple(wanted)
    for leaf in _CHANGING[change]:
        yield from _selected(switch, port, leaf, patterns)


def setting(switch: EmulatedSwitch, wanted: Elements, value: gnmi.TypedValue) -> tuple[int, bool]:
    """Return the port that an update is about, and whether it enables it.

    The interface may have the port's own name too, by which fabric files know it.
    Raises RequestError for any other leaf than ``config/enabled``, an unknown interface, and a value that is no bool.
    """
    match wanted:
        case (("interfaces", _), ("interface", name), ("config", _), ("enabled", _)):
            pass
        case _:
            raise invalid_argument(f"gNMI: {text(wanted)} cannot be set, only config/enabled of an interface")
    ports = [port for port in switch.ports if interface_name(switch.name, port) == name]
    ports += [port for port, own_name in switch.port_names.items() if own_name == name]
    if not ports:
        raise not_found(f"switch {switch.name} has no interface {name}")
    if value.WhichOneof("value") != "bool_val":
        raise invalid_argument(f"gNMI: {text(wanted)} takes a bool_val, not {value.WhichOneof('value')}")
    return ports[0], value.bool_val


def elements_of(prefix: gnmi.Path, path: gnmi.Path) -> Elements:
    """Return the elements of a path after its prefix."""
    return tuple((element.name, element.key.get("name")) for element in (*prefix.elem, *path.elem))


def text(elements: Elements) -> str:
    """Return a path as messages show it."""
    return "/".join(name if key is None else f"{name}[name={key}]" for name, key in elements)


def _selected(switch: EmulatedSwitch, port: int, leaf: Leaf, patterns: tuple[Elements, ...]) -> Iterator[gnmi.Update]:
    name = interface_name(switch.name, port)
    container, leaf_name = leaf.value
    elements: Elements = (("interfaces", None), ("interface", name), (container, None), (leaf_name, None))
    if any(_is_below(elements, pattern) for pattern in patterns):
        yield gnmi.Update(path=_path(elements), val=_value(switch, port, leaf))


def _is_below(leaf: Elements, pattern: Elements) -> bool:
    return len(pattern) <= len(leaf) and all(
        wanted in (name, "*") and wanted_key in (key, "*", None)
        for (name, key), (wanted, wanted_key) in zip(leaf, pattern, strict=False)
    )


def _path(elements: Elements) -> gnmi.Path:
    path = gnmi.Path()
    for name, key in elements:
        path.elem.add(name=name, key={} if key is None else {"name": key})
    return path


def _value(switch: EmulatedSwitch, port: int, leaf: Leaf) -> gnmi.TypedValue:
    match leaf:
        case Leaf.NAME:
            return gnmi.TypedValue(string_val=interface_name(switch.name, port))
        case Leaf.IF_INDEX:
            return gnmi.TypedValue(uint_val=port)
        case Leaf.OPER_STATUS:
            return gnmi.TypedValue(string_val="UP" if switch.ports.is_up(port) else "DOWN")
        case Leaf.ADMIN_STATUS:
            return gnmi.TypedValue(string_val="UP" if switch.ports.is_enabled(port) else "DOWN")
        case Leaf.ENABLED | Leaf.WANTED:
            return gnmi.TypedValue(bool_val=switch.ports.is_enabled(port))
