"""TLS of the controller's own port, with certificates that are renewed without a restart."""

import ssl
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from controller.access.options import ServerTls
from controller.access.reloading_file import ReloadingFiles


def server_credentials(tls: ServerTls) -> grpc.ServerCredentials:
    """The credentials of a server; where an authority is named, clients must show certificates that it has signed.

    Raises UnusableFileError.
    """
    paths: list[Path] = [tls.certificate, tls.key, *([] if tls.ca is None else [tls.ca])]
    files = ReloadingFiles(paths, _certificate_configuration)
    # gRPC asks at every handshake, in threads of its own.
    return grpc.dynamic_ssl_server_credentials(files.content, lambda: files.content, tls.ca is not None)


def _certificate_configuration(
    certificate: bytes, key: bytes, ca: bytes | None = None
) -> "grpc.ServerCertificateConfiguration":
    check_pair(certificate, key)
    if ca is not None:
        check_authorities(ca)
    return grpc.ssl_server_certificate_configuration([(key, certificate)], ca)


def check_pair(certificate: bytes, key: bytes) -> None:
    """Raise ValueError where a key does not belong to a certificate (PEM), or one of them cannot be read."""
    try:
        first = x509.load_pem_x509_certificate(certificate)
    except ValueError as error:
        raise ValueError("the certificate is not PEM") from error
    try:
        own = load_pem_private_key(key, password=None)
    except (ValueError, TypeError) as error:
        raise ValueError("the key is not PEM, or has a password") from error
    if own.public_key() != first.public_key():
        raise ValueError("the key does not belong to the certificate")


def check_authorities(ca: bytes) -> None:
    """Raise ValueError where there is no certificate of an authority (PEM)."""
    try:
        ssl.create_default_context(cadata=ca.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise ValueError("the authorities' certificates are not PEM") from error
