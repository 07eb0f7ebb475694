"""Errors of the transport."""


class TransportError(Exception):
    """Something between two processes of a runtime did not succeed."""


class FrameError(TransportError):
    """A peer sent what no peer may send; its connection ends, and the message names what was wrong."""


class HandshakeError(TransportError):
    """A connection was refused, or the other end could not prove that it knows the token."""


class PeerLostError(TransportError):
    """A peer is gone, and what was under way to it or from it is lost; the message names peer and cause."""


class WithdrawnError(TransportError):
    """An execution was withdrawn before this tuple of it had been transferred."""
