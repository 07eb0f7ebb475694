"""The hosts of emulators that run on this machine, so that others can run programs in them.

A process that owns hosts records their places in a file of its own, which ends with it.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from topologies.namespaces.enter import Place
from topologies.namespaces.fabric_namespaces import FabricNamespaces

FOLDER = Path("/run/trainyard")
"""For root alone, who may enter hosts."""


@dataclass(frozen=True, slots=True)
class RunningHosts:
    """The hosts of a process: their places by name."""

    pid: int
    places: Mapping[str, Place]


@contextmanager
def recorded(namespaces: FabricNamespaces) -> Iterator[None]:
    """Record the hosts of this process until the block ends. Raises OSError where that is not permitted."""
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    path = FOLDER / f"hosts-{os.getpid()}.json"
    places = {host: namespaces.place(host)._asdict() for host in namespaces.fabric.hosts}
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(places))
    partial.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def running_hosts() -> list[RunningHosts]:
    """Return the hosts of all processes that run; files that others have left are removed.

    Raises:
        OSError: Only root may read them.
    """
    found = []
    for path in sorted(FOLDER.glob("hosts-*.json")):
        pid = int(path.stem.removeprefix("hosts-"))
        places = {host: Place(**place) for host, place in json.loads(path.read_text()).items()}
        if all(_exists(place) for place in places.values()):
            found.append(RunningHosts(pid, places))
        else:
            path.unlink(missing_ok=True)
    return found


def _exists(place: Place) -> bool:
    return Path(f"/proc/{place.owner}").exists() and Path("/run/netns", str(place.network)).exists()
