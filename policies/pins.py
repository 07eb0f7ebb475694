"""Pins: what an operator has decided by hand about a job or a flow, for a while."""

from dataclasses import dataclass

from policies.flows import FlowKey
from topologies.fabric import Path


@dataclass(frozen=True, slots=True)
class LevelPin:
    """All flows of a job have this level until a time; ``by`` is who asked for it, empty where nobody is known."""

    job: str
    level: int
    until_s: float
    by: str = ""


@dataclass(frozen=True, slots=True)
class PathPin:
    """A flow takes this path until a time, while the path is one of its candidates; ``by`` is who asked for it."""

    flow: FlowKey
    path: Path
    until_s: float
    by: str = ""


Pin = LevelPin | PathPin
