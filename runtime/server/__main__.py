"""Run a server with settings from stdin, which ends when stdin does.

It prints a line: ``ready`` and its address once all hosts are there, or ``failed`` and why.
"""

import asyncio
import sys

from runtime.server.process import serve
from runtime.server.settings import ServerSettings
from runtime.settings import read_settings
from runtime.substrates.interface import SubstrateError

if __name__ == "__main__":
    tell, sys.stdout = sys.stdout, sys.stderr  # where Ray prints what functions print
    try:
        told = read_settings(ServerSettings, sys.stdin)
        asyncio.run(serve(told, lambda address: print("ready", address, file=tell, flush=True), sys.stdin))
    except (SubstrateError, ValueError) as error:
        print("failed", " ".join(str(error).split()), file=tell, flush=True)
