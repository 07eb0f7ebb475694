"""Cut what comes from a peer into messages by their headers, and refuse what no OpenFlow peer would send."""

from controller.southbound.openflow.channel_errors import Misbehaviour, MisbehaviourError
from controller.southbound.openflow.control_messages import ControlType
from controller.southbound.openflow.messages import HEADER

_LONGEST_GREETING_BYTES = 1_024
"""Of a hello, or of the error in its place."""
_GREETINGS = ControlType.HELLO, ControlType.ERROR
_LAST_VERSION = 0x7F
"""Greater ones were for experiments before 1.0."""
_TLS = b"\x16\x03"
"""How a TLS handshake begins; an OpenFlow header of these bytes would be of no version that exists."""


class Framer:
    """The bytes of a connection that have not been taken as messages.

    Before a version is negotiated only greetings may come, of any version. Afterwards all is of that version. It never
    holds more than a message and what came with its last bytes.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._version: int | None = None

    def expect(self, version: int) -> None:
        """Take messages of this version alone, from the next one on."""
        self._version = version

    def feed(self, octets: bytes) -> None:
        """Add bytes that have come."""
        self._buffer += octets

    def take(self, most: int = 1 << 16) -> list[bytes]:
        """Return the next whole messages.

        Raises:
            MisbehaviourError: No message begins where one should.
        """
        taken: list[bytes] = []
        at, buffer = 0, self._buffer
        with memoryview(buffer) as octets:
            while len(taken) < most and len(octets) - at >= HEADER.size:
                version, kind, length, _ = HEADER.unpack_from(octets, at)
                if length < HEADER.size or version != self._version:
                    self._check(version, kind, length, bytes(octets[at : at + HEADER.size]))
                if len(octets) - at < length:
                    break
                taken.append(bytes(octets[at : at + length]))
                at += length
        del buffer[:at]
        return taken

    def _check(self, version: int, kind: int, length: int, header: bytes) -> None:
        """Raise MisbehaviourError, unless it is a greeting and one may come."""
        if self._version is not None:
            problem = (
                f"a message that says it has {length} bytes"
                if length < HEADER.size
                else f"a message of version {version} where {self._version} was agreed"
            )
        elif header.startswith(_TLS):
            problem = "a TLS handshake where plain text is expected"
        elif kind in _GREETINGS and HEADER.size <= length <= _LONGEST_GREETING_BYTES and 0 < version <= _LAST_VERSION:
            return
        else:
            problem = "no OpenFlow hello"
        raise MisbehaviourError(Misbehaviour.GARBAGE, f"{problem}: {header.hex(' ')}")
