"""Certificates for tests, made in memory and written as PEM files."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Identity:
    """The PEM files of a certificate for 127.0.0.1 and of its key."""

    certificate: Path
    key: Path


class Authority:
    """An authority whose own certificate is ``ca``; it issues into its folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        basic = x509.BasicConstraints(ca=True, path_length=None)
        own = self._builder(self._name, self._key).add_extension(basic, critical=True).sign(self._key, hashes.SHA256())
        self.ca = folder / f"{name}.pem"
        self.ca.write_bytes(own.public_bytes(Encoding.PEM))

    def issue(self, name: str) -> Identity:
        """Issue a certificate; one that has been issued under this name is replaced."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        host = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
        certificate = self._builder(subject, key).add_extension(host, critical=False).sign(self._key, hashes.SHA256())
        identity = Identity(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        identity.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        identity.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return identity

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )
