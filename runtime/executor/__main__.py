"""Run an executor, with settings from stdin."""

import sys

from runtime.executor.process import Executor
from runtime.settings import read_settings
from runtime.substrates.interface import HostSettings

if __name__ == "__main__":
    Executor(read_settings(HostSettings, sys.stdin)).run()
