"""TLS with switches that speak OpenFlow: both sides show certificates. Renewed files serve the next connection."""

import ssl
from functools import partial

from controller.access.reloading_file import ReloadingFiles
from controller.access.tls_files import TlsFiles, check_tls


class SwitchTls:
    """The contexts of connections with switches.

    Args:
        files: The own certificate, and the authority of the switches' certificates.
        is_server: Whether switches connect to us; else we connect to them, and they must have certificates for their
            addresses.

    Raises:
        UnusableFileError: The files cannot be used.
    """

    def __init__(self, files: TlsFiles, *, is_server: bool) -> None:
        make = partial(_context, files, is_server)
        self._contexts = ReloadingFiles((files.certificate, files.key, files.ca), make)

    @property
    def context(self) -> ssl.SSLContext:
        """The context for a new connection."""
        return self._contexts.content


def _context(files: TlsFiles, is_server: bool, certificate: bytes, key: bytes, ca: bytes) -> ssl.SSLContext:
    """The context of files with these contents, which it reads again. Raises ValueError."""
    check_tls(certificate, key, ca)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_cert_chain(files.certificate, files.key)
        context.load_verify_locations(cadata=ca.decode())
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot be used: {error}") from error
    return context
