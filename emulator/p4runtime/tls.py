"""Transport security of a server: its own certificate, and those it accepts from clients."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc


@dataclass(frozen=True, slots=True)
class ServerTls:
    """PEM files; every client has to show a certificate that ``client_authorities`` vouches for."""

    certificate_chain: Path
    private_key: Path
    client_authorities: Path

    def credentials(self) -> grpc.ServerCredentials:
        """What gRPC needs. Raises ValueError, naming the files, where they cannot be used; OSError if unreadable."""
        chain, key = self.certificate_chain.read_bytes(), self.private_key.read_bytes()
        authorities = self.client_authorities.read_bytes()
        # gRPC itself would only tell on its standard error, and refuse every client later.
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
