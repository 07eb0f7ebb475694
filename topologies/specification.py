"""The ``topology:`` mapping of a scenario: every kind there is."""

from typing import Annotated

from pydantic import Field

from topologies.graph import GraphSpecification, LinkSpecification
from topologies.pods import DoubleSidedSpecification, FatTreeSpecification
from topologies.regular import ClosSpecification, DumbbellSpecification, StarSpecification

__all__ = [
    "ClosSpecification",
    "DoubleSidedSpecification",
    "DumbbellSpecification",
    "FatTreeSpecification",
    "GraphSpecification",
    "LinkSpecification",
    "StarSpecification",
    "Topology",
]

Topology = Annotated[
    ClosSpecification
    | DoubleSidedSpecification
    | FatTreeSpecification
    | DumbbellSpecification
    | StarSpecification
    | GraphSpecification,
    Field(discriminator="kind"),
]
"""One of the kinds, told apart by ``kind``; ``build`` makes the fabric of it."""
