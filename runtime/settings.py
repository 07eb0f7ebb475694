"""Settings of the processes of the runtime: a line of JSON on stdin, where no list of processes shows them."""

import json
from typing import IO, TypeVar

from runtime.codec import decode_plain, plain_fields

T = TypeVar("T")


def write_settings(settings: object, stream: IO[str]) -> None:
    """Write settings, a dataclass."""
    stream.write(json.dumps(settings, default=plain_fields) + "\n")
    stream.flush()


def read_settings(kind: type[T], stream: IO[str]) -> T:
    """Read settings. Raises MalformedError."""
    return decode_plain(kind, json.loads(stream.readline()))
