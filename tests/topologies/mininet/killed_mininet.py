"""Run inside private namespaces: kills ``mn``, and says which of the processes that it has started are left."""

import subprocess
import time

from tests.docs.pages import ROOT
from tests.mininet_cli import CUSTOM, TOPOLOGY, MininetCli, running
from tests.patience import PATIENCE_S

_STARTED = ("mininet:", "-m trainyard", "sleep 4712")

with subprocess.Popen(
    ["mn", "--custom", CUSTOM, "--topo", f"trainyard,{TOPOLOGY}"],
    cwd=ROOT,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
) as mn:
    cli = MininetCli(mn)
    cli.type("h0 sh -c 'setsid sleep 4712 &'")
    for started in _STARTED:
        assert running(started), started
    mn.kill()
    mn.wait()
by = time.monotonic() + PATIENCE_S
while running(*_STARTED) and time.monotonic() < by:
    time.sleep(0.01)
print("left:", running(*_STARTED))
