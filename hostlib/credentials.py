"""Credentials of a client of the controller: the CA it trusts, and the certificate or token that tells who it is."""

import os
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import grpc

from hostlib.addresses import is_local, socket_path
from hostlib.files import read_file

_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a client shows a controller, and by what it knows the controller.

    With ``ca`` connections use TLS and trust controllers whose certificate one of the CAs in that file has signed;
    without it they are plain text. ``certificate`` and ``key`` are the client's own, ``token`` or what ``token_file``
    contains its bearer token. Files are PEM, but for the token's. They may be replaced at any time: clients notice
    within seconds.

    Raises ValueError for a certificate without its key or without a CA, a key without a certificate, two tokens, and a
    token that HTTP cannot carry.
    """

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None

    def __post_init__(self) -> None:
        for name in ("ca", "certificate", "key", "token_file"):
            path = getattr(self, name)
            if path is not None and not isinstance(path, Path):
                raise ValueError(f"{name}: expected a Path, got {path!r:.100}")
        if (self.certificate is None) != (self.key is None):
            given, lacking = ("key", "certificate") if self.certificate is None else ("certificate", "key")
            raise ValueError(f"{lacking}: missing, though {given} is given; they only work together")
        if self.certificate is not None and self.ca is None:
            raise ValueError("ca: missing, though certificate is given; a client's certificate needs TLS")
        if self.token is not None and self.token_file is not None:
            raise ValueError("token: token_file is given too; only one of them is possible")
        if self.token is not None:
            _check_token("token", self.token)

    @classmethod
    def from_environment(
        cls,
        *,
        ca: Path | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
        token_file: Path | None = None,
    ) -> Self:
        """Read TRAINYARD_CA, _CERTIFICATE, _KEY, _TOKEN and _TOKEN_FILE, except for what is given.

        A given ``token_file`` replaces a token as well. An empty variable counts as not set. Raises ValueError as the
        constructor does.
        """

        def of(name: str) -> str | None:
            return os.environ.get(f"TRAINYARD_{name}") or None

        def file_of(name: str, given: Path | None) -> Path | None:
            path = of(name)
            return given if given is not None or path is None else Path(path)

        return cls(
            ca=file_of("CA", ca),
            certificate=file_of("CERTIFICATE", certificate),
            key=file_of("KEY", key),
            token=of("TOKEN") if token_file is None else None,
            token_file=file_of("TOKEN_FILE", token_file),
        )

    @property
    def has_files(self) -> bool:
        """Whether files may change what a client shows."""
        return self.ca is not None or self.token_file is not None

    def check(self, address: str) -> None:
        """Check that an address may be called with these credentials, and that all files can be used.

        Raises ValueError, naming the file, if one is missing, unreadable or damaged, and for a token that would travel
        in plain text, or a CA for a Unix socket, which has no TLS.
        """
        if self.ca is not None and socket_path(address) is not None:
            raise ValueError(f"ca: {self.ca} is given, but {address} has no TLS; a Unix socket needs none")
        if (self.token is not None or self.token_file is not None) and self.ca is None and not is_local(address):
            raise ValueError(f"ca: missing; a token must not travel in plain text to {address}")
        self.contents()
        self.metadata()

    def channel(self, address: str, options: Sequence[tuple[str, Any]] = ()) -> grpc.Channel:
        """Return a channel to a controller, with TLS if there is a CA. Raises ValueError as ``check``."""
        self.check(address)
        ca, certificate, key = self.contents()
        if ca is None:
            return grpc.insecure_channel(address, options)
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(ca, key, certificate), options)

    def contents(self) -> tuple[bytes | None, bytes | None, bytes | None]:
        """Return the contents of CA, certificate and key. Raises ValueError, naming the file, for what TLS cannot use.

        A key that does not fit the certificate is such a case: one of the two is about to be replaced.
        """
        if self.ca is None:
            return None, None, None
        ca, certificate, key = (
            None if path is None else read_file(path) for path in (self.ca, self.certificate, self.key)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(self.ca)
        except (ssl.SSLError, OSError) as error:
            raise ValueError(f"{self.ca}: no CA certificate in PEM: {error}") from None
        if self.certificate is not None and self.key is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, password=b"")  # an encrypted key asks nobody
            except (ssl.SSLError, OSError) as error:
                raise ValueError(
                    f"{self.certificate}, {self.key}: no certificate in PEM with its key: {error}"
                ) from None
        return ca, certificate, key

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return what calls carry of the token, read anew from its file. Raises ValueError, naming the file."""
        token = self.token
        if self.token_file is not None:
            token = read_file(self.token_file).decode("ascii", "replace").strip()
            _check_token(str(self.token_file), token)
        return () if token is None else (("authorization", f"Bearer {token}"),)


def _check_token(name: str, token: str) -> None:
    # The token itself stays out of the message.
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise ValueError(f"{name}: expected a token of printable ASCII characters without spaces")
