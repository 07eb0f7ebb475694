"""Messages that grow with the number of flows, split so that each fits into what gRPC takes."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from google.protobuf.message import Message

MAX_MESSAGE_BYTES = 4 << 20
"""What gRPC takes by default, and what both ends of the wire take."""

_BATCH_BYTES = 1 << 20

MessageT = TypeVar("MessageT", bound=Message)


def batches(messages: Sequence[MessageT]) -> Iterator[Sequence[MessageT]]:
    """Successive runs of messages, about a mebibyte each; at least one message in a run."""
    first, size_bytes = 0, 0
    for position, message in enumerate(messages):
        size_bytes += message.ByteSize()
        if size_bytes > _BATCH_BYTES and position > first:
            yield messages[first:position]
            first, size_bytes = position, message.ByteSize()
    if first < len(messages):
        yield messages[first:]
