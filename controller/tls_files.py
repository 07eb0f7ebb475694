"""The files by which a side of a TLS connection proves who it is and knows the other side."""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator


class TlsFiles(BaseModel):
    """PEM files: the authorities that the other side's certificate must be from, and a certificate with its key.

    They are checked when this is made; whoever opens a connection reads them anew, so that they can be renewed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ca: Path
    certificate: Path
    key: Path

    @model_validator(mode="after")
    def _files_fit(self) -> Self:
        check_tls_files(self.ca, self.certificate, self.key)
        return self


def check_tls_files(ca: Path, certificate: Path, key: Path) -> None:
    """Check that three PEM files exist and parse, and that the key is that of the certificate.

    Raises:
        ValueError: One is not so; the message names the field and the file.
    """
    # It is slow to import, and most controllers on loopback have no certificates.
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificates

    octets = {}
    for field, path in (("ca", ca), ("certificate", certificate), ("key", key)):
        try:
            octets[field] = path.read_bytes()
        except OSError as error:
            raise ValueError(f"{field}: {path}: cannot be read: {error.strerror}") from error
    for field, path in (("ca", ca), ("certificate", certificate)):
        try:
            certificates = load_pem_x509_certificates(octets[field])
        except ValueError as error:
            raise ValueError(f"{field}: {path}: has no PEM certificate") from error
    try:
        private = load_pem_private_key(octets["key"], None)
    except (TypeError, ValueError) as error:
        raise ValueError(f"key: {key}: is no PEM private key without a password") from error
    if private.public_key() != certificates[0].public_key():
        raise ValueError(f"key: {key}: is not the key of the certificate {certificate}")
