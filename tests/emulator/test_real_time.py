"""Real time leaves a core free, ends by itself where a process hogs its core, and is not inherited."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

_PROGRAM = """
import os, signal, subprocess, sys, threading, time
from pathlib import Path
from emulator.real_time import RealTime, RealTimeError

signal.alarm(240)
idle = threading.Thread(target=time.sleep, args=(240,), daemon=True)
idle.start()
everywhere = os.sched_getaffinity(0)
try:
    real_time = RealTime(Path(sys.argv[1]))
except RealTimeError as error:
    sys.exit(str(error))
signal.signal(signal.SIGXCPU, lambda *_: real_time.end())


def policies():
    return {os.sched_getscheduler(int(task)) for task in os.listdir("/proc/self/task")}


print(policies() == {os.SCHED_FIFO | os.SCHED_RESET_ON_FORK}, len(everywhere - os.sched_getaffinity(0)))
ask = "import os; print(os.sched_getscheduler(0) == os.SCHED_OTHER)"
print(subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout.strip())
other = "from pathlib import Path; import sys; from emulator.real_time import *; RealTime(Path(sys.argv[1]))"
refused = subprocess.run([sys.executable, "-c", other, sys.argv[1]], capture_output=True, text=True)
print("another process" in refused.stderr)
began_s = time.thread_time()
while policies() != {os.SCHED_OTHER | os.SCHED_RESET_ON_FORK}:  # never waits
    pass
print(time.thread_time() - began_s < 1, os.sched_getaffinity(0) == everywhere)
"""


def test_a_process_that_hogs_its_core_becomes_ordinary_again(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("real time needs two cores: it is not tried here")
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path / "lock")], capture_output=True, text=True, timeout=PATIENCE_S
    )
    if "real time is not permitted" in ended.stderr:
        pytest.skip(f"{ended.stderr.strip()}: not tried here")
    assert (ended.stdout.splitlines(), ended.returncode) == (["True 1", "True", "True", "True True"], 0), ended.stderr
