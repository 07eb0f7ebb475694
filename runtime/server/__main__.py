"""Run a server with settings from stdin; it prints a line once all hosts are there, and ends when stdin does."""

import asyncio
import sys

from runtime.server.process import serve
from runtime.server.settings import ServerSettings
from runtime.settings import read_settings

if __name__ == "__main__":
    asyncio.run(serve(read_settings(ServerSettings, sys.stdin), lambda: print("ready", flush=True), sys.stdin))
