"""Messages as headers of frames: JSON (``codec``), or whole numbers where one is sent for every run (``words``)."""

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from typing import Any

from runtime.codec import MalformedError, decode_plain, plain_fields
from runtime.messages import client_to_server, everybody, executor_to_server, server_to_client, server_to_executor
from runtime.messages.client_to_server import Execute, Fetch, Release
from runtime.messages.executor_to_server import ShardFetched, Sized
from runtime.messages.server_to_client import Fetched
from runtime.messages.server_to_executor import FetchShard, ReleaseOn, Run
from runtime.words import from_words, to_words

_OF_WORDS = (Execute, Release, Fetch, Fetched, Run, ReleaseOn, FetchShard, ShardFetched, Sized)
"""Messages of every run. Their headers begin with their place in this row, those of others with a bracket."""
_WORD = struct.Struct("!q")
_SUBPROGRAM_AT = 1 + 2 * _WORD.size
_BY_NAME: dict[str, Any] = {
    name: kind
    for module in (client_to_server, everybody, executor_to_server, server_to_client, server_to_executor)
    for name, kind in vars(module).items()
    if is_dataclass(kind) and kind.__module__ == module.__name__ and kind not in _OF_WORDS
}
_PLACES = {kind: bytes((place,)) for place, kind in enumerate(_OF_WORDS)}


def encode(message: object) -> bytes:
    """Return a message as the header of a frame."""
    place = _PLACES.get(type(message))
    if place is not None:
        return place + to_words(message)
    return json.dumps([type(message).__name__, message], default=plain_fields, separators=(",", ":")).encode()


def encoded_runs(run: Run, subprograms: Sequence[int]) -> Iterator[bytes]:
    """Yield a Run as the header of a frame for each of several subprograms: nothing else differs."""
    header = bytearray(encode(run))
    for number in subprograms:
        _WORD.pack_into(header, _SUBPROGRAM_AT, number)
        yield bytes(header)


def decode(header: bytes) -> object:
    """Return the message that a header is. Raises MalformedError."""
    if header and header[0] < len(_OF_WORDS):
        return from_words(_OF_WORDS[header[0]], header[1:])
    try:
        name, plain = json.loads(header)
    except (ValueError, TypeError, RecursionError):
        raise MalformedError("expected a message") from None
    kind = _BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None:
        raise MalformedError(f"there is no message {name!r:.50}")
    return decode_plain(kind, plain)
