"""A topology as an explicit graph, for fabrics that no other kind describes."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from topologies.fabric import Cable, Fabric
from topologies.faults import Ends, Fault, find_faults
from topologies.keys import DelayUs, Gbps, Specification, refusal
from topologies.names import PlainName

Names = tuple[PlainName, ...]

_NAMES: TypeAdapter[Names] = TypeAdapter(Names)
_ENDS: TypeAdapter[Ends] = TypeAdapter(tuple[PlainName, PlainName])
_LINKS: TypeAdapter[tuple[Any, ...]] = TypeAdapter(tuple[Any, ...])


class LinkSpecification(BaseModel):
    """One cable; ``delay_us`` where it differs from the topology's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ends: tuple[PlainName, PlainName]
    gbps: Gbps
    delay_us: DelayUs | None = None


class GraphSpecification(Specification):
    """Hosts and switches by name, and the links between them; several between the same ends are parallel links.

    A host has a NIC per link, in the order of the links. What is wrong with the graph (``topologies.faults``) is
    refused together with what is wrong with single values.
    """

    kind: Literal["graph"]
    hosts: Names
    switches: Names
    links: tuple[LinkSpecification, ...]

    @model_validator(mode="wrap")
    @classmethod
    def _is_a_fabric(cls, document: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(document, Mapping):
            return validate(document)
        faults = _faults_of_the_whole(document)
        try:
            graph = validate(document)
        except ValidationError as error:
            raise refusal(cls, faults, error.errors()) from error
        if faults:
            raise refusal(cls, faults)
        return graph

    def build(self) -> Fabric:
        """The fabric as listed; names are kept."""
        cables = (
            Cable(link.ends, link.gbps * 1e9, (self.delay_us if link.delay_us is None else link.delay_us) * 1e-6)
            for link in self.links
        )
        return Fabric(self.hosts, self.switches, tuple(cables), self.gpus_per_host, self.host_pcie)


def _faults_of_the_whole(document: Mapping[str, Any]) -> list[Fault]:
    """Faults of the graph as far as its names and its links' ends are what they should be, whatever the rest is."""
    try:
        hosts, switches = (_NAMES.validate_python(document.get(key)) for key in ("hosts", "switches"))
        links = _LINKS.validate_python(document.get("links"))
    except ValidationError:
        return []
    return find_faults(hosts, switches, [_ends(link) for link in links])


def _ends(link: object) -> Ends | None:
    try:
        return _ENDS.validate_python(link.get("ends") if isinstance(link, Mapping) else getattr(link, "ends", None))
    except ValidationError:
        return None
