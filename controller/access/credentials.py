"""What a caller shows of itself, by gRPC or by HTTP: a token, a client certificate, or both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc.aio

from controller.access.errors import UnauthenticatedError

_LONGEST_TOKEN = 8_192


@dataclass(frozen=True, slots=True)
class ShownCredentials:
    """A token, and the client certificate (PEM) of the connection, which TLS has verified; None where there is none."""

    token: str | None = None
    certificate: str | None = None


def credentials_of_call(context: "grpc.aio.ServicerContext[Any, Any]") -> ShownCredentials:
    """The credentials of a gRPC call. Raises UnauthenticatedError where the token cannot be read."""
    given = [str(value) for name, value in context.invocation_metadata() or () if name == "authorization"]
    certificates = context.auth_context().get("x509_pem_cert", ())
    return ShownCredentials(token_of(given), next((octets.decode() for octets in certificates), None))


def token_of(authorizations: Sequence[str]) -> str | None:
    """The token in the headers ``authorization`` of a request; None where there are none.

    Raises UnauthenticatedError where there are several, or another kind of credentials.
    """
    if not authorizations:
        return None
    kind, _, token = authorizations[0].partition(" ")
    if len(authorizations) > 1 or kind.lower() != "bearer" or not token or len(token) > _LONGEST_TOKEN:
        raise UnauthenticatedError("authorization: expected one token, as in 'Bearer TOKEN'")
    return token
