"""Reads files that somebody else may have put in place."""

from pathlib import Path


def read_file(path: Path) -> bytes:
    """Return the contents of a regular file; a device or a pipe might never end.

    Raises ValueError, naming the file, for anything else and where the file cannot be read.
    """
    try:
        if not path.is_file():
            path.stat()  # raises where there is nothing
            raise ValueError(f"{path}: not a regular file")
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
