"""Who looks at the page: by session, token or client certificate, in the same roles as everywhere."""

import json
from time import monotonic

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from controller.access.authenticator import Authenticator
from controller.access.budget import Budget
from controller.access.credentials import ShownCredentials, token_of
from controller.access.errors import AccessError, ForbiddenError, UnauthenticatedError
from controller.access.identity import Identity, Role
from controller.web.callers import credentials_of_request, identified
from controller.web.page.sessions import LIFETIME_S, Sessions

_ATTEMPTS_AT_ONCE = 10
_ATTEMPT_EVERY_S = 6.0
_ATTEMPTS_OF_ALL_AT_ONCE = 100
_ATTEMPT_OF_ALL_EVERY_S = 0.1
_MOST_BODY_BYTES = 16 * 1024


class Visitors:
    """Signs visitors in and out, and tells who makes a request.

    Args:
        authenticator: Tells who somebody is.
        is_secure: Whether the page is behind TLS.
    """

    def __init__(self, authenticator: Authenticator, *, is_secure: bool) -> None:
        self._authenticator = authenticator
        self._is_secure = is_secure
        self._sessions = Sessions()
        self._attempts = Budget(_ATTEMPTS_AT_ONCE, 1 / _ATTEMPT_EVERY_S, monotonic)
        self._attempts_of_all = Budget(_ATTEMPTS_OF_ALL_AT_ONCE, 1 / _ATTEMPT_OF_ALL_EVERY_S, monotonic)

    def viewer(self, request: Request) -> Identity:
        """Return who makes a request. Raises UnauthenticatedError, and ForbiddenError for who is no viewer."""
        token = self._sessions.token(request.cookies.get(self._cookie(request), ""))
        shown = (
            credentials_of_request(request)
            if token is None
            else ShownCredentials(token, request.state.client_certificate)
        )
        return _as_viewer(identified(request, self._authenticator, shown))

    async def who(self, request: Request) -> Response:
        """Answer who the visitor is and whether there is a session to end, or why the visitor has to sign in."""
        try:
            identity = self.viewer(request)
        except AccessError as error:
            if "authorization" in request.headers:  # the page sends none; who guesses is slowed down and logged
                raise
            return JSONResponse({"refusal": str(error)})
        has_session = self._sessions.token(request.cookies.get(self._cookie(request), "")) is not None
        return JSONResponse({"name": identity.name if identity.is_known else "", "session": has_session})

    async def sign_in(self, request: Request) -> Response:
        """Begin a session for the token in a request: ``{"token": ...}``."""
        _check_own_page(request)
        address = "" if request.client is None else request.client.host
        if self._attempts.take(address) is None or self._attempts_of_all.take("") is None:
            return JSONResponse(
                {"problem": "too many attempts; wait a few seconds"},
                429,
                {"Retry-After": str(round(_ATTEMPT_EVERY_S))},
            )
        token = token_of([f"Bearer {await _token_in(request)}"])
        identity = _as_viewer(self._authenticator.identify(ShownCredentials(token, request.state.client_certificate)))
        assert token is not None
        cookie = self._sessions.begin(token, str(identity))
        response = JSONResponse({"name": identity.name if identity.is_known else "", "session": True})
        response.set_cookie(
            self._cookie(request),
            cookie,
            max_age=round(LIFETIME_S),
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite="strict",
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        """End the session of a request."""
        _check_own_page(request)
        name = self._cookie(request)
        self._sessions.end(request.cookies.get(name, ""))
        response = Response(status_code=204)
        response.delete_cookie(name, path="/", secure=self._is_secure, httponly=True, samesite="strict")
        return response

    def _cookie(self, request: Request) -> str:
        """The cookie's name, with the port, since browsers show cookies of one port of a host to all others.

        A browser takes a name with ``__Host-`` from nobody but the host itself, behind TLS.
        """
        server = request.scope.get("server") or ("", 0)
        return f"{'__Host-' if self._is_secure else ''}trainyard-{server[1]}"


def _as_viewer(identity: Identity) -> Identity:
    if Role.VIEWER not in identity.roles:
        raise ForbiddenError(f"the page is for {Role.VIEWER}, not for {identity}")
    return identity


def _check_own_page(request: Request) -> None:
    """Raise ForbiddenError where the page of somebody else makes a request, as the browser says."""
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise ForbiddenError("this request does not come from the controller's own page")


async def _token_in(request: Request) -> str:
    """The token in the body of a request. Raises UnauthenticatedError."""
    octets = b""
    async for part in request.stream():
        octets += part
        if len(octets) > _MOST_BODY_BYTES:
            raise UnauthenticatedError("the token is too long")
    try:
        body = json.loads(octets)
    except (ValueError, RecursionError):
        body = None
    token = body.get("token") if isinstance(body, dict) else None
    if not isinstance(token, str) or not token.isascii() or not token.strip():
        raise UnauthenticatedError('expected {"token": TOKEN}')
    return token.strip()
