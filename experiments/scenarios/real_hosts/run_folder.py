"""The folder of a run on real hosts, for sockets and tokens, which is gone with the run, however the run ended.

As a program, ``python run_folder.py PID FOLDER``, it waits for the end of a process and removes the folder. It is run
by its path, and needs Python alone.
"""

import contextlib
import os
import select
import shutil
import signal
import subprocess  # nosec B404 # runs this file, without a shell
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TRIES = 50
_BETWEEN_S = 0.1


@contextmanager
def run_folder() -> Iterator[Path]:
    """Make a folder for a run of this process; a process of its own removes it where this one is killed."""
    with tempfile.TemporaryDirectory(prefix="trainyard-") as folder:
        command = (sys.executable, "-I", "-S", __file__, str(os.getpid()), folder)
        remover = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # nosec B603 # our own
        try:
            yield Path(folder)
        finally:
            remover.kill()
            remover.wait()


def main(pid: int, folder: str) -> None:
    """Remove a folder when a process has ended."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    with contextlib.suppress(ProcessLookupError):
        select.select([os.pidfd_open(pid)], [], [])
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not Path(folder).exists():
            return
        time.sleep(_BETWEEN_S)  # programs of the run that are about to end may still write there


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
