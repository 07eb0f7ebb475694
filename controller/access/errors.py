"""The reasons for which a call is refused before anybody looks at its request."""

from controller.errors import DaemonError


class AccessError(DaemonError):
    """A call that is refused because of who makes it."""


class UnauthenticatedError(AccessError):
    """The caller shows no identity, or one that does not hold."""


class ForbiddenError(AccessError):
    """The caller's roles do not include this call."""
