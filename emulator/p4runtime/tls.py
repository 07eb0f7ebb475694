"""TLS configuration of a server."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from topologies.files import read_bytes


@dataclass(frozen=True, slots=True)
class ServerTls:
    """PEM files; every client must present a certificate signed by ``client_authorities``."""

    certificate_chain: Path
    private_key: Path
    client_authorities: Path

    def credentials(self) -> grpc.ServerCredentials:
        """Return gRPC credentials. Raises ValueError, naming files that are invalid or cannot be read."""
        chain, key = read_bytes(self.certificate_chain), read_bytes(self.private_key)
        authorities = read_bytes(self.client_authorities)
        # gRPC would only write to standard error, and refuse every client later.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate_chain, self.private_key)
        except ssl.SSLError as error:
            raise ValueError(f"{self.certificate_chain} and {self.private_key} are not a key pair: {error}") from None
        try:
            context.load_verify_locations(self.client_authorities)
        except ssl.SSLError as error:
            raise ValueError(f"{self.client_authorities} has no certificates of authorities: {error}") from None
        return grpc.ssl_server_credentials([(key, chain)], root_certificates=authorities, require_client_auth=True)
