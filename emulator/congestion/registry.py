"""Finds congestion controls: shipped and registered ones by name, any other by ``module:attribute``.

A distribution registers a control by an entry point of the group ``trainyard.congestion_controls``. Loading
``module:attribute`` runs the code of that module; only ``load_control`` does it, for what the user has typed. Names
from a file that somebody else may have written go through ``find_control``.
"""

import sys
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from emulator.congestion.control import FIXED, CongestionControl
from emulator.congestion.dctcp import DCTCP
from emulator.congestion.reno import RENO
from emulator.congestion.swift import SWIFT

GROUP = "trainyard.congestion_controls"

_SHIPPED = {control.name: control for control in (RENO, DCTCP, SWIFT)}


class CongestionControlError(ValueError):
    """A congestion control cannot be found or loaded; the message says why."""


def control_names() -> tuple[str, ...]:
    """Return the names that a flow's control may have, the transport's fixed windows first."""
    return (FIXED, *sorted({*_SHIPPED, *(entry.name for entry in entry_points(group=GROUP))}))


def find_control(name: str) -> CongestionControl:
    """Return the shipped or registered control of this name; imports no other code.

    Raises CongestionControlError where there is none, where two distributions claim the name, and where it cannot be
    loaded.
    """
    if ":" in name:
        raise CongestionControlError(f"{name!r} names code to import, where only registered controls may be named")
    entries = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if name in _SHIPPED and not entries:
        return _SHIPPED[name]
    if not entries:
        known = ", ".join(control_names())
        raise CongestionControlError(f"unknown congestion control {name!r}: expected one of {known}")
    if len(entries) + (name in _SHIPPED) > 1:
        raise CongestionControlError(f"congestion control {name!r} is registered more than once")
    return _loaded(name, entries[0])


def load_control(name: str) -> CongestionControl:
    """Return the control of this name, or the one that ``module:attribute`` names, also in the working directory.

    Raises CongestionControlError as ``find_control``, and where the module or attribute is not there.
    """
    if ":" not in name:
        return find_control(name)
    if "" not in sys.path:
        sys.path.append("")  # last, so that the working directory hides no installed module
    return _loaded(name, EntryPoint(name, name, GROUP))


def as_control(control: CongestionControl | str) -> CongestionControl:
    """Return the control itself, or the registered one of this name. Raises CongestionControlError."""
    return find_control(control) if isinstance(control, str) else control


def _loaded(name: str, entry: EntryPoint) -> CongestionControl:
    module, _, attribute = entry.value.partition(":")
    try:
        control = getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:
        raise CongestionControlError(
            f"congestion control {name!r} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(control, CongestionControl):
        raise CongestionControlError(f"congestion control {name!r} is a {type(control).__name__}")
    return control
