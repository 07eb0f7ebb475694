"""Explicit graphs, for fabrics that no other kind of topology describes."""

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

from topologies.base_specification import DelayUs, Gbps, Specification
from topologies.fabric import Cable, Fabric
from topologies.graph_checks import Ends, graph_problems
from topologies.names import PlainName
from topologies.problems import Problem, validation_error

Names = tuple[PlainName, ...]

_NAMES: TypeAdapter[Names] = TypeAdapter(Names)
_ENDS: TypeAdapter[Ends] = TypeAdapter(tuple[PlainName, PlainName])
_LINKS: TypeAdapter[tuple[Any, ...]] = TypeAdapter(tuple[Any, ...])


class LinkSpecification(BaseModel):
    """One cable; ``delay_us`` overrides the topology's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ends: tuple[PlainName, PlainName]
    gbps: Gbps
    delay_us: DelayUs | None = None


class GraphSpecification(Specification):
    """Hosts and switches by name, and the links between them; links between the same ends are parallel.

    A host has a NIC per link, in the order of the links. Problems of the graph (``topologies.graph_checks``) are
    reported together with those of single values.
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
        problems = _graph_problems(document)
        try:
            graph = validate(document)
        except ValidationError as error:
            raise validation_error(cls, problems, error.errors()) from error
        if problems:
            raise validation_error(cls, problems)
        return graph

    def build(self) -> Fabric:
        """Build the fabric as listed; names are kept."""
        cables = (
            Cable(link.ends, link.gbps * 1e9, (self.delay_us if link.delay_us is None else link.delay_us) * 1e-6)
            for link in self.links
        )
        return Fabric(self.hosts, self.switches, tuple(cables), self.gpus_per_host, self.host_pcie)


def _graph_problems(document: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of the graph if its names and links are well-formed, whatever the rest is."""
    try:
        hosts, switches = (_NAMES.validate_python(document.get(key)) for key in ("hosts", "switches"))
        links = _LINKS.validate_python(document.get("links"))
    except ValidationError:
        return []
    return graph_problems(hosts, switches, [_ends(link) for link in links])


def _ends(link: object) -> Ends | None:
    try:
        return _ENDS.validate_python(link.get("ends") if isinstance(link, Mapping) else getattr(link, "ends", None))
    except ValidationError:
        return None
