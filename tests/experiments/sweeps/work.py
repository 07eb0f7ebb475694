"""Work functions for processes to import, in a module of their own so that processes start quickly."""

import os
import time
from pathlib import Path


def squared(number: int) -> int:
    """Return the square; 3 raises an error and 4 ends the process."""
    if number == 3:
        raise ValueError("no three")
    if number == 4:
        os._exit(9)
    return number * number


def wait_for_or_sleep(item: tuple[Path, bool]) -> int:
    """Wait until another process has written its number, or write it and sleep."""
    note, waits = item
    if waits:
        while not note.exists():
            time.sleep(0.01)
        return 1
    written = note.with_suffix(".written")
    written.write_text(str(os.getpid()))
    written.rename(note)
    time.sleep(600)
    return 2
