"""Run an executor, with settings from stdin."""

import os
import signal
import sys

from runtime.executor.process import Executor
from runtime.settings import read_settings
from runtime.substrates.interface import HostSettings

# The loop and the threads of devices hand work to each other; Python's default of five milliseconds is too long a wait.
_SWITCH_S = 1e-4

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, and executors end with it
    sys.setswitchinterval(_SWITCH_S)
    Executor(read_settings(HostSettings, sys.stdin)).run()
    # Threads of devices may still compute, in memory that must not go before them.
    os._exit(0)
