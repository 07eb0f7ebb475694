"""Run inside private namespaces: kills the owner of Mininet's hosts, and says which of its processes are left."""

import subprocess
import sys
import time
from pathlib import Path

from tests.patience import PATIENCE_S

OWNER = Path(__file__).with_name("owner.py")


def _processes() -> list[str]:
    """The command lines of all processes of these namespaces but this one."""
    lines = subprocess.run(["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    args = [line.split(None, 1)[1] for line in lines if not line.startswith("Z")]
    return [arg for arg in args if "sleep 4712" in arg or "mininet:" in arg]


with subprocess.Popen([sys.executable, str(OWNER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
    assert owner.stdout is not None
    owner.stdout.readline()
    while sum(process == "sleep 4712" for process in _processes()) < 2:
        time.sleep(0.01)
    print("both run")
    owner.kill()
    owner.wait()
by = time.monotonic() + PATIENCE_S
while _processes() and time.monotonic() < by:
    time.sleep(0.01)
print("left:", _processes())
