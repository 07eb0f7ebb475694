"""Tells who makes a call: from the token that it carries, else from the client certificate of its connection."""

import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from cryptography import x509
from cryptography.x509.oid import NameOID

from controller.access.credentials import ShownCredentials
from controller.access.errors import UnauthenticatedError
from controller.access.identity import Identity, IdentityError, identity, unknown_identity
from controller.access.options import JwtOptions
from controller.access.reloading_file import ReloadingFiles
from controller.access.signed_tokens import parse_key, verify
from controller.access.tokens import KnownToken, parse_tokens, token_hash

_MOST_REMEMBERED = 10_000


class Authenticator(Protocol):
    """Tells who makes a call."""

    def identify(self, shown: ShownCredentials) -> Identity:
        """Return the caller's identity. Raises UnauthenticatedError."""
        ...


class Anybody:
    """Takes everybody for the same unknown identity; ``agents``: that may report probes too."""

    def __init__(self, *, agents: bool = False) -> None:
        self._identity = unknown_identity(agents=agents)

    def identify(self, _: ShownCredentials) -> Identity:
        """Return the unknown identity."""
        return self._identity


class CredentialsAuthenticator:
    """Tells who calls by tokens and client certificates; what it has verified it remembers while that holds.

    Args:
        tokens: The file of static tokens; None: there are none.
        signed: The key of signed tokens, and what they must say; None: there are none.
        now_s: Unix time.
    """

    def __init__(
        self,
        tokens: ReloadingFiles[Mapping[str, KnownToken]] | None = None,
        signed: tuple[ReloadingFiles[bytes], JwtOptions] | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._tokens = tokens
        self._signed = signed
        self._now_s = now_s
        self._verified: dict[Hashable, KnownToken] = {}

    def identify(self, shown: ShownCredentials) -> Identity:
        """Return the identity of the token that a call carries, else that of the client certificate.

        Raises:
            UnauthenticatedError: There is neither, or what there is does not hold.
        """
        token, certificate = shown.token, shown.certificate
        if token is not None:
            known = self._of_token(token, certificate)
        elif certificate is not None:
            known = self._remembered(certificate, lambda: _of_certificate(certificate))
        else:
            raise UnauthenticatedError("a token or a client certificate is needed (docs/security.md)")
        if known.expires_s is not None and known.expires_s <= self._now_s():
            raise UnauthenticatedError("the token has expired" if token else "the client certificate has expired")
        return known.identity

    def _of_token(self, token: str, certificate: str | None) -> KnownToken:
        if self._tokens is not None and (known := self._tokens.content.get(token_hash(token))) is not None:
            return known
        if self._signed is not None and token.count(".") == 2:
            files, options = self._signed
            key = files.content
            return self._remembered(
                (token, certificate, files.version), lambda: verify(token, key, options, certificate)
            )
        raise UnauthenticatedError("the token is not known")

    def _remembered(self, credential: Hashable, verified: Callable[[], KnownToken]) -> KnownToken:
        known = self._verified.get(credential)
        if known is None:
            known = verified()
            if len(self._verified) >= _MOST_REMEMBERED:
                self._verified.clear()
            self._verified[credential] = known
        return known


def authenticator(tokens: Path | None, signed: JwtOptions | None) -> CredentialsAuthenticator:
    """An authenticator by client certificates, a file of tokens and signed tokens. Raises UnusableFileError."""
    return CredentialsAuthenticator(
        None if tokens is None else ReloadingFiles((tokens,), parse_tokens),
        None if signed is None else (ReloadingFiles((signed.key,), partial(parse_key, signed.algorithm)), signed),
    )


def _of_certificate(pem: str) -> KnownToken:
    """The identity in a certificate's subject: common name, organisational unit (role), organisation (tenant)."""
    try:
        certificate = x509.load_pem_x509_certificate(pem.encode())
        fields = [
            [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(oid)]
            for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME, NameOID.ORGANIZATION_NAME)
        ]
        if any(len(values) > 1 for values in fields):
            raise UnauthenticatedError("client certificate: CN, OU and O may each be there once")
        known = identity(*("".join(values) for values in fields))
    except IdentityError as error:
        raise UnauthenticatedError(
            f"client certificate: {error} (CN is the name, OU the role, O the tenant)"
        ) from error
    except ValueError as error:
        raise UnauthenticatedError("client certificate: cannot be read") from error
    return KnownToken(known, certificate.not_valid_after_utc.timestamp())
