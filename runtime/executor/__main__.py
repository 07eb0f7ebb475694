"""Run an executor, with settings from stdin."""

import os
import signal
import sys

from runtime.executor.process import SWITCH_S, Executor
from runtime.settings import read_settings
from runtime.substrates.interface import HostSettings

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, and executors end with it
    sys.setswitchinterval(SWITCH_S)
    Executor(read_settings(HostSettings, sys.stdin)).run()
    # Threads of devices may still compute, in memory that must not go before them.
    os._exit(0)
