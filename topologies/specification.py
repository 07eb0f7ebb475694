"""The ``topology:`` mapping of a scenario: all kinds of topology."""

from typing import Annotated

from pydantic import Field

from topologies.clos import ClosSpecification, DumbbellSpecification, StarSpecification
from topologies.fabric_specification import FabricSpecification
from topologies.fat_tree import DoubleSidedSpecification, FatTreeSpecification
from topologies.graph import GraphSpecification, LinkSpecification

__all__ = [
    "ClosSpecification",
    "DoubleSidedSpecification",
    "DumbbellSpecification",
    "FabricSpecification",
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
    | GraphSpecification
    | FabricSpecification,
    Field(discriminator="kind"),
]
"""A topology of the kind named by ``kind``; ``build`` returns its fabric."""
