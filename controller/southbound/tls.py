"""TLS with certificates towards switches. Files are read for every connection, so that renewed ones are used."""

from collections.abc import Sequence
from typing import Any

import grpc
from finsy.grpcutil import GRPCCredentialsTLS

from controller.access.tls_files import TlsFiles
from topologies.files import read_bytes


def finsy_credentials(files: TlsFiles | None) -> GRPCCredentialsTLS | None:
    """Return the credentials for a finsy switch, which reads the files by itself; None for plain text."""
    if files is None:
        return None
    return GRPCCredentialsTLS(cacert=files.ca, cert=files.certificate, private_key=files.key)


def open_channel(address: str, files: TlsFiles | None, options: Sequence[tuple[str, Any]]) -> grpc.aio.Channel:
    """Open a channel to HOST:PORT, in plain text without files.

    Raises:
        FileError: A file cannot be read.
    """
    if files is None:
        return grpc.aio.insecure_channel(address, options)
    credentials = grpc.ssl_channel_credentials(*map(read_bytes, (files.ca, files.key, files.certificate)))
    return grpc.aio.secure_channel(address, credentials, options)
