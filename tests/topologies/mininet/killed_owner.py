"""Run inside private namespaces: kills the owner of Mininet's hosts, and says which of its processes are left."""

import subprocess
import sys
import time
from pathlib import Path

from tests.mininet_cli import running
from tests.patience import PATIENCE_S

OWNER = Path(__file__).with_name("owner.py")

with subprocess.Popen([sys.executable, str(OWNER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
    assert owner.stdout is not None
    owner.stdout.readline()
    while running("sleep 4712").count("sleep 4712") < 2:
        time.sleep(0.01)
    print("both run")
    owner.kill()
    owner.wait()
by = time.monotonic() + PATIENCE_S
while running("sleep 4712", "mininet:") and time.monotonic() < by:
    time.sleep(0.01)
print("left:", running("sleep 4712", "mininet:"))
