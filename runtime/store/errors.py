"""What the store refuses; each message names the buffer, the owner or the memory. Nothing has changed then."""


class StoreError(ValueError):
    """The base of the errors of this package."""


class UnknownHandleError(StoreError):
    """A handle or a shard that the store does not have, or does not have any more."""


class UnknownMemoryError(StoreError):
    """A memory that the host does not have."""


class TooLargeError(StoreError):
    """A request that its memory could not hold even if it were empty."""


class ConflictError(StoreError):
    """A request that contradicts what the store holds, or itself."""
