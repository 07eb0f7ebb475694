"""Ports of a switch as a tree of OpenConfig interfaces, whose leaves gNMI reads."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from finsy.proto import gnmi

from emulator.switch import EmulatedSwitch

Elements = tuple[tuple[str, str | None], ...]
"""Elements of a path with their key ``name``; a name or key ``*`` and a key None match anything."""


class Leaf(StrEnum):
    """Leaf of an interface."""

    NAME = "name"
    IF_INDEX = "ifindex"
    OPER_STATUS = "oper-status"


def interface_name(switch: EmulatedSwitch, port: int) -> str:
    """Return the name of a port: its switch's name and its number."""
    return f"{switch.name}-eth{port}"


def current(switch: EmulatedSwitch, wanted: Iterable[Elements]) -> Iterator[gnmi.Update]:
    """Return the leaves at or below any of the wanted paths, in order of the ports, each once."""
    patterns = tuple(wanted)
    for port in switch.ports:
        for leaf in Leaf:
            yield from _selected(switch, port, leaf, patterns)


def changed(switch: EmulatedSwitch, wanted: Iterable[Elements], port: int) -> Iterator[gnmi.Update]:
    """Return the wanted leaves of a port that change when it goes up or down."""
    yield from _selected(switch, port, Leaf.OPER_STATUS, tuple(wanted))


def elements_of(prefix: gnmi.Path, path: gnmi.Path) -> Elements:
    """Return the elements of a path after its prefix."""
    return tuple((element.name, element.key.get("name")) for element in (*prefix.elem, *path.elem))


def _selected(switch: EmulatedSwitch, port: int, leaf: Leaf, patterns: tuple[Elements, ...]) -> Iterator[gnmi.Update]:
    name = interface_name(switch, port)
    elements: Elements = (("interfaces", None), ("interface", name), ("state", None), (leaf, None))
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
            return gnmi.TypedValue(string_val=interface_name(switch, port))
        case Leaf.IF_INDEX:
            return gnmi.TypedValue(uint_val=port)
        case Leaf.OPER_STATUS:
            return gnmi.TypedValue(string_val="UP" if switch.ports.is_up(port) else "DOWN")
