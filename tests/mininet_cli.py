"""Mininet's own command line, inside namespaces of a test: nothing of it reaches the machine's processes or files."""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, Queue

import pytest

from tests.docs.pages import ROOT
from tests.patience import PATIENCE_S

CUSTOM = "topologies/mininet/custom.py"
TOPOLOGY = "docs/examples/class-room.yaml"
PROMPT = "mininet> "

# Processes, mounts and networks of its own, with a private temporary folder and private names of namespaces.
_PRIVATE = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
_INSIDE = (
    'mkdir -p /run/netns && mount -t tmpfs none /run/netns && mount -t tmpfs none /tmp && ip link set lo up && "$@"'
)


def require_mininet() -> None:
    """Skip the test, and say why, where Mininet cannot run."""
    missing = [program for program in ("mn", "mnexec", "ip", "ping", "iperf") if shutil.which(program) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"needs root and Mininet, missing here: {missing}: Mininet is not tried")
    if subprocess.run([*_PRIVATE, "true"], check=False).returncode:
        pytest.skip("no namespaces can be made: Mininet is not tried")


def private(*command: str) -> list[str]:
    """Return the command line that runs a command in namespaces of its own."""
    return [*_PRIVATE, "sh", "-c", _INSIDE, "sh", *command]


def running(*words: str) -> list[str]:
    """Return the command lines of the processes, of these namespaces, in which one of the words occurs."""
    lines = subprocess.run(["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split(None, 1)[1] for line in lines if not line.startswith("Z")]
    return [args for args in found if any(word in args for word in words)]


class MininetCli:
    """A running ``mn``, to which lines are typed one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._printed: Queue[str] = Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.beginning = self._until_prompt()

    def type(self, line: str) -> str:
        """Type a line; return what Mininet prints until its next prompt."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._until_prompt()

    def leave(self) -> str:
        """Leave Mininet; return what it prints as it ends."""
        with pytest.raises(EOFError) as ended:
            self.type("exit")
        return str(ended.value)

    def _read(self) -> None:
        assert self._process.stdout is not None
        while character := self._process.stdout.read(1):
            self._printed.put(character)
        self._printed.put("")

    def _until_prompt(self) -> str:
        text = ""
        by = time.monotonic() + PATIENCE_S
        while not text.endswith(PROMPT):
            try:
                character = self._printed.get(timeout=by - time.monotonic())
            except Empty:
                raise TimeoutError(f"Mininet does not come to its prompt: {text}") from None
            if not character:
                raise EOFError(text)
            text += character
        return text.removesuffix(PROMPT)


@contextmanager
def mininet(*options: str) -> Iterator[MininetCli]:
    """Run ``mn`` with Trainyard's custom file until the block ends."""
    require_mininet()
    with subprocess.Popen(
        private("mn", "--custom", CUSTOM, "--topo", f"trainyard,{TOPOLOGY}", *options),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield MininetCli(process)
        finally:
            process.kill()
