"""Who makes an HTTP request, and whether that may be answered: the same identities and roles as of gRPC calls."""

from starlette.requests import Request

from controller.access.authenticator import Authenticator
from controller.access.credentials import ShownCredentials, token_of
from controller.access.errors import ForbiddenError
from controller.access.identity import Identity, Role


def credentials_of_request(request: Request) -> ShownCredentials:
    """The bearer token of a request, and the client certificate of its connection. Raises UnauthenticatedError."""
    return ShownCredentials(token_of(request.headers.getlist("authorization")), request.state.client_certificate)


def identified(request: Request, authenticator: Authenticator, shown: ShownCredentials) -> Identity:
    """Return who shows these credentials with a request: from now on its ``state.caller``, who has the connection.

    Raises UnauthenticatedError where nothing says who that is, or something does not hold.
    """
    request.state.caller = identity = authenticator.identify(shown)
    if identity.is_known:
        request.state.know(str(identity))
    return identity


def require(request: Request, authenticator: Authenticator, role: Role) -> Identity:
    """Return who makes a request; see ``identified``.

    Raises:
        UnauthenticatedError: The request shows nothing that says who makes it, or something that does not hold.
        ForbiddenError: Whoever makes it does not have the role.
    """
    identity = identified(request, authenticator, credentials_of_request(request))
    if role not in identity.roles:
        raise ForbiddenError(f"{request.url.path}: is for {role}, not for {identity}")
    return identity
