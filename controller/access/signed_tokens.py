"""Signed tokens: JSON Web Tokens (RFC 7519) that somebody whose key the configuration names has issued.

A token says ``sub`` (the name), ``role``, ``tenant`` for jobs, ``aud``, ``iat`` and ``exp``. With ``cnf`` it holds for
one client certificate alone (RFC 8705, section 3.1), so that whoever copies it cannot use it.
"""

import base64
import hashlib
import ssl

import jwt

from controller.access.errors import UnauthenticatedError
from controller.access.identity import IdentityError, identity
from controller.access.options import JwtOptions
from controller.access.tokens import KnownToken

_LEEWAY_S = 10.0
"""How far the clock of the issuer may be off."""
_SHORTEST_SECRET_BYTES = 32


def parse_key(algorithm: str, content: bytes) -> bytes:
    """Check a key for an algorithm, and return it. Raises ValueError."""
    if algorithm.startswith("HS"):
        secret = content.strip()
        if len(secret) < _SHORTEST_SECRET_BYTES:
            raise ValueError(f"the secret must have at least {_SHORTEST_SECRET_BYTES} bytes")
        if b"-----BEGIN" in secret:
            raise ValueError(f"holds a key in PEM, which is no secret for {algorithm}")
        return secret
    try:
        jwt.get_algorithm_by_name(algorithm).prepare_key(content)
    except (ValueError, TypeError, jwt.PyJWTError) as error:
        raise ValueError(f"not a public key for {algorithm}") from error
    return content


def verify(token: str, key: bytes, options: JwtOptions, certificate: str | None) -> KnownToken:
    """Return the identity that a signed token stands for; ``certificate`` is the caller's (PEM).

    Raises:
        UnauthenticatedError: The token is not valid here, or not now.
    """
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=[options.algorithm],
            audience=options.audience,
            issuer=options.issuer,
            leeway=_LEEWAY_S,
            options={"require": ["sub", "exp", "iat"]},
        )
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise UnauthenticatedError(f"token: {error}") from error
    if not all(type(claims[name]) in (int, float) for name in ("exp", "iat")):
        raise UnauthenticatedError("token: exp and iat must be numbers")
    if claims["exp"] - claims["iat"] > options.max_lifetime_s:
        raise UnauthenticatedError(f"token: holds for longer than {options.max_lifetime_s:g} s")
    bound_to = claims.get("cnf")
    if bound_to is not None and not _is_bound_to(bound_to, certificate):
        raise UnauthenticatedError("token: belongs to another client certificate")
    try:
        known = identity(claims["sub"], claims.get("role"), claims.get("tenant", ""))
    except IdentityError as error:
        raise UnauthenticatedError(f"token: {error}") from error
    return KnownToken(known, float(claims["exp"]) + _LEEWAY_S)


def thumbprint(certificate: str) -> str:
    """The thumbprint of a certificate (PEM), as ``cnf`` has it: ``x5t#S256``."""
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _is_bound_to(confirmation: object, certificate: str | None) -> bool:
    if certificate is None or not isinstance(confirmation, dict):
        return False
    return bool(confirmation.get("x5t#S256") == thumbprint(certificate))
