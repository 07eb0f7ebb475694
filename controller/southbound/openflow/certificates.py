"""Which certificate may claim which switch, where the configuration says so: any of the authority's may otherwise."""

from asyncio import StreamWriter
from collections.abc import Iterator
from typing import Any

from controller.southbound.openflow.channel_errors import Misbehaviour, MisbehaviourError
from topologies.printable import printable

_MOST_CHARACTERS = 200


def names_of(writer: StreamWriter) -> frozenset[str]:
    """Return the names that a peer's certificate is for: those of its hosts, and its common name. None without TLS."""
    certificate = writer.get_extra_info("peercert")
    return frozenset(name.lower() for name in _names(certificate)) if certificate else frozenset()


def require_name(datapath_id: int, names: frozenset[str], wanted: str | None) -> None:
    """Raise MisbehaviourError where a switch is to have a certificate for ``wanted``, and has one for these names."""
    if wanted is not None and wanted.lower() not in names:
        shown = printable(", ".join(sorted(names)), _MOST_CHARACTERS) or "nobody"
        problem = f"{datapath_id:#x}: the certificate is for {shown}, and has to be for {wanted}"
        raise MisbehaviourError(Misbehaviour.CERTIFICATE, problem)


def _names(certificate: dict[str, Any]) -> Iterator[str]:
    for _, name in certificate.get("subjectAltName", ()):
        yield name
    for part in certificate.get("subject", ()):
        for key, name in part:
            if key == "commonName":
                yield name
