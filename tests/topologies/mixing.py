"""Fabrics some of whose switches are ordinary ones, or of another target."""

from collections.abc import Container
from dataclasses import replace

from topologies.fabric import Control, Fabric
from topologies.targets import Target


def with_ordinary(fabric: Fabric, switches: Container[str]) -> Fabric:
    """Return the fabric in which these switches serve levels, and hash as they like."""
    identities = tuple(
        replace(identity, control=Control.DSCP_ONLY) if name in switches else identity
        for name, identity in fabric.identity.items()
    )
    return replace(fabric, identities=identities)


def with_tofinos(fabric: Fabric, switches: Container[str]) -> Fabric:
    """Return the fabric in which these switches are Tofinos."""
    identities = tuple(
        replace(identity, target=Target.TOFINO) if name in switches else identity
        for name, identity in fabric.identity.items()
    )
    return replace(fabric, identities=identities)
