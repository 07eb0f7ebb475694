"""Watch ports of group members and of actions in a set (P4Runtime specification, section 9.2.2)."""

from finsy.proto import p4r

from emulator.p4runtime.bytestrings import decode_value
from emulator.p4runtime.errors import invalid_argument
from emulator.p4runtime.target import Target

PORT_BITS = 32


def decode_watch_port(
    target: Target, message: p4r.ActionProfileGroup.Member | p4r.ActionProfileAction, where: str
) -> int | None:
    """Return the watched port, None if there is none; the deprecated integer means the same as the byte string.

    Raises RequestError: INVALID_ARGUMENT for a port that the switch lacks, OUT_OF_RANGE for a value of more than 32
    bits.
    """
    if not message.watch_port and not message.watch:
        return None
    port = decode_value(message.watch_port, PORT_BITS, f"{where}, watch_port") if message.watch_port else message.watch
    if port not in target.switch.ports:
        raise invalid_argument(f"{where}: switch {target.switch.name} has no port {port} to watch")
    return port
