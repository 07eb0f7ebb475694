"""The files by which a side of a TLS connection proves who it is and knows the other side."""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from topologies.files import FileError, read_bytes


class ServerTls(BaseModel):
    """PEM files: a certificate with its key, and the authorities that the other side's certificate must be from.

    They are checked when this is made. They are read again when they change, so that they can be renewed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    certificate: Path
    """The own certificate, followed by those of intermediate authorities."""
    key: Path
    ca: Path | None = None
    """None: clients need no certificates."""

    @model_validator(mode="after")
    def _files_fit(self) -> Self:
        check_tls_files(self.certificate, self.key, self.ca)
        return self


class TlsFiles(ServerTls):
    """The same where the other side always needs a certificate."""

    ca: Path


def check_tls_files(certificate: Path, key: Path, ca: Path | None) -> None:
    """Check that PEM files exist and parse, and that the key is that of the certificate.

    Raises:
        ValueError: One is not so; the message names the field and the file.
    """
    octets: dict[str, bytes | None] = {"ca": None}
    for field, path in (("certificate", certificate), ("key", key), *([] if ca is None else [("ca", ca)])):
        try:
            octets[field] = read_bytes(path)
        except FileError as error:
            raise ValueError(f"{field}: {error}") from error
    try:
        check_tls(octets["certificate"] or b"", octets["key"] or b"", octets["ca"])
    except ValueError as error:
        field, _, problem = str(error).partition(": ")
        at = {"certificate": certificate, "key": key, "ca": ca}[field]
        raise ValueError(f"{field}: {at}: {problem}") from error


def check_tls(certificate: bytes, key: bytes, ca: bytes | None) -> None:
    """Raise ValueError, which begins with the field, where PEM does not parse or the key is another certificate's."""
    # It is slow to import, and most controllers on loopback have no certificates.
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificates

    try:
        first, *_ = load_pem_x509_certificates(certificate)
    except ValueError as error:
        raise ValueError("certificate: has no PEM certificate") from error
    try:
        private = load_pem_private_key(key, None)
    except (TypeError, ValueError) as error:
        raise ValueError("key: is no PEM private key without a password") from error
    if private.public_key() != first.public_key():
        raise ValueError("key: is not the key of the certificate")
    try:
        load_pem_x509_certificates(ca or certificate)
    except ValueError as error:
        raise ValueError("ca: has no PEM certificate") from error
