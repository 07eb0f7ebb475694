"""What the resource manager refuses; each message names the thing. Nothing has changed then."""


class ResourceError(ValueError):
    """The base of the errors of this package."""


class UnknownResourceError(ResourceError):
    """An island, a host, a device, a client or a slice that is not there."""


class InvalidResourceError(ResourceError):
    """A description that contradicts itself or what is there."""


class DoesNotFitError(ResourceError):
    """A slice that no island can hold now."""


class SuspendedError(ResourceError):
    """A request that the client's suspension, or its absence, forbids."""
