"""Errors of codecs. Each is a ValueError, and names what is wrong."""


class NonFiniteError(ValueError):
    """A gradient has NaN or an infinity. It was not added to anything."""


class CorruptPayloadError(ValueError):
    """A payload is not what an encoder made for a vector of this length. Nothing was added to the vector."""
