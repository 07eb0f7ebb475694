"""TLS of the controller's own port, with certificates that are renewed without a restart."""

from pathlib import Path

import grpc

from controller.access.reloading_file import ReloadingFiles
from controller.access.tls_files import ServerTls, check_tls


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
    check_tls(certificate, key, ca)
    return grpc.ssl_server_certificate_configuration([(key, certificate)], ca)
