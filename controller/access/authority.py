"""A small certificate authority for trials: one key that signs the certificates of controllers and of those who call.

A client's certificate names it in its subject: CN is the name, OU the role, O the tenant of jobs. A server's names the
addresses by which it is called. ``trainyard certificates`` writes them all.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from controller.access.identity import Role, identity
from controller.errors import DaemonError
from topologies.files import FileError, read_bytes

_BACKDATED = timedelta(minutes=5)
"""The clocks of others may be late."""
_HOST_NAME = re.compile(r"[A-Za-z0-9_*][A-Za-z0-9_.-]*", re.ASCII)
_MOST_CHARACTERS = 64
"""Of a field of a subject (RFC 5280, appendix A.1)."""


class AuthorityError(DaemonError, ValueError):
    """A certificate cannot be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, in PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> None:
        """Write ``name.pem`` and ``name.key``, which only the owner may read. Raises OSError."""
        key = folder / f"{name}.key"
        key.unlink(missing_ok=True)
        key.touch(mode=0o600, exist_ok=False)
        key.write_bytes(self.key)
        (folder / f"{name}.pem").write_bytes(self.certificate)


class Authority:
    """Signs certificates.

    Example::

        authority = Authority.new(days=365)
        controller = authority.server("controller", ["controller.example.org", "10.0.0.1"], days=90)
        trainer = authority.client("nightly", Role.JOB, "vision", days=90)
    """

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self._certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != self._certificate.public_key():
            raise AuthorityError("the authority's key does not belong to its certificate")
        self._key = key

    @classmethod
    def new(cls, days: int) -> "Authority":
        """Make an authority with a key of its own."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Trainyard trial authority")])
        signs = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        certificate = (
            _builder(subject, subject, key, days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(signs, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(_pair(certificate, key))

    @classmethod
    def read(cls, folder: Path) -> "Authority":
        """Read ``ca.pem`` and ``ca.key`` in a folder. Raises AuthorityError."""
        try:
            pair = Pair(read_bytes(folder / "ca.pem"), read_bytes(folder / "ca.key"))
        except FileError as error:
            raise AuthorityError(str(error)) from error
        try:
            return cls(pair)
        except (ValueError, TypeError) as error:
            raise AuthorityError(f"{folder}: holds no authority: {error}") from error

    def server(self, name: str, addresses: Sequence[str], days: int) -> Pair:
        """Sign a server's certificate for these host names and IP addresses. Raises AuthorityError."""
        if not addresses:
            raise AuthorityError("a server needs a host name or an address")
        names = x509.SubjectAlternativeName([_general_name(address) for address in addresses])
        subject = x509.Name([_field(NameOID.COMMON_NAME, name)])
        # A controller is a client of its switches, by the same certificate.
        return self._sign(subject, days, names, ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)

    def client(self, name: str, role: Role, tenant: str, days: int) -> Pair:
        """Sign the certificate of somebody who calls. Raises IdentityError and AuthorityError."""
        identity(name, role, tenant)
        fields = [(NameOID.COMMON_NAME, name), (NameOID.ORGANIZATIONAL_UNIT_NAME, str(role))]
        if tenant:
            fields.append((NameOID.ORGANIZATION_NAME, tenant))
        return self._sign(x509.Name([_field(*field) for field in fields]), days, None, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _sign(
        self,
        subject: x509.Name,
        days: int,
        names: x509.SubjectAlternativeName | None,
        *usages: x509.ObjectIdentifier,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            _builder(subject, self._certificate.subject, key, days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(authority, critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=days))
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    octets = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), octets)


def _field(kind: x509.ObjectIdentifier, text: str) -> "x509.NameAttribute[str]":
    if not 0 < len(text) <= _MOST_CHARACTERS:
        raise AuthorityError(
            f"{text[:_MOST_CHARACTERS]!r}: names in certificates have 1 to {_MOST_CHARACTERS} characters"
        )
    return x509.NameAttribute(kind, text)


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(address))
    except ValueError:
        if _HOST_NAME.fullmatch(address) is None:
            raise AuthorityError(f"{address[:_MOST_CHARACTERS]!r}: neither an IP address nor a host name") from None
        return x509.DNSName(address)
