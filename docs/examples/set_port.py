"""Take a port of an emulated switch down, or up again: set_port.py SWITCH PORT down|up [HOST:PORT]."""

import asyncio
import sys

from finsy import GNMIClient, GNMIPath


async def main(switch: str, port: str, state: str, address: str = "127.0.0.1:9559") -> None:
    enabled = GNMIPath(f"interfaces/interface[name={switch}-eth{port}]/config/enabled")
    async with GNMIClient(address) as client:
        await client.set(update=[(enabled, state == "up")], prefix=GNMIPath(target=switch))


asyncio.run(main(*sys.argv[1:]))
