"""Trainyard's topologies, switches and controller for Mininet, as ``mn`` reads them.

    sudo mn --custom topologies/mininet/custom.py --topo trainyard,docs/examples/class-room.yaml

``mn`` runs this file with Debian's Python, and takes over every name in it: ``switches`` and ``controllers`` are its
own words for what ``--switch`` and ``--controller`` may name, it calls ``findController`` without ``--controller``, and
it makes the network by ``Mininet``.
"""

import importlib.util
import sys
from pathlib import Path

import mininet.clean
import mininet.net


def _do_nothing(*_: object) -> str:
    return ""


# After an error ``mn`` would end processes of the whole machine by their names, and delete files of others.
mininet.clean.sh = mininet.clean.killprocs = _do_nothing
mininet.clean.cleanUpScreens = mininet.net.cleanUpScreens = _do_nothing

# Else root would own files in the checkout.
sys.dont_write_bytecode = True

# ``mn`` gives this file no name of its own. Loaded like this, its package needs no place on the path.
_folder = Path(_do_nothing.__code__.co_filename).resolve().parent.parent
_spec = importlib.util.spec_from_file_location(
    "topologies", _folder / "__init__.py", submodule_search_locations=[str(_folder)]
)
assert _spec is not None
sys.modules["topologies"] = importlib.util.module_from_spec(_spec)

from topologies.mininet.controllers import TrainyardController  # noqa: E402
from topologies.mininet.networks import FabricMininet as Mininet  # noqa: E402, F401
from topologies.mininet.openvswitch import OpenVSwitchBridge  # noqa: E402
from topologies.mininet.switches import EmulatedSwitch  # noqa: E402
from topologies.mininet.topology import FabricTopo  # noqa: E402

topos = {"trainyard": FabricTopo}
switches = {"trainyard": EmulatedSwitch, "default": EmulatedSwitch, "ovs": OpenVSwitchBridge}
controllers = {"trainyard": TrainyardController}


def findController() -> type[TrainyardController]:  # noqa: N802
    """Return the controller that ``mn`` starts if it is told none."""
    return TrainyardController


def cleanup() -> None:
    """Do nothing, in place of ``mn -c``: all that has been started ends with ``mn``."""
