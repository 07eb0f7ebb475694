"""A process that takes the lease, and then holds the lock of the database in the middle of a batch.

``python -m tests.controller.store.holding DATABASE LEASE_S`` prints ``holds`` once it does; with a third argument it
leaves the lock alone.
"""

import asyncio
import sys
import time
from functools import partial

from sqlalchemy import Connection, insert

from controller.leadership.lease import LeaseRecord
from controller.store.database import Database
from controller.store.leader_lease import DatabaseLease, require_term
from controller.store.schema import JOB


def _hold(term: int, connection: Connection) -> None:
    require_term(term, connection)
    job = {"name": "half", "hosts": "[]", "gpus": 1, "arrival_s": 0.0, "owner_token": "", "tenant": ""}
    connection.execute(insert(JOB), job)
    if connection.dialect.name == "postgresql":
        # As while it sends a batch: statements without the message that ends them, so that the server waits for more.
        session = connection.connection.driver_connection
        with session.pipeline():
            session.execute("SELECT 1")
            session.pgconn.send_flush_request()
            session.pgconn.flush()
            _say_and_wait()
    _say_and_wait()


def _say_and_wait() -> None:
    print("holds", flush=True)
    time.sleep(3600)


async def _lead(address: str, lease_s: float, *, locks: bool) -> None:
    table = DatabaseLease(Database.open(address))
    seen = await table.read()
    term = seen.term + 1
    assert await table.take(seen, LeaseRecord("holder", term, 0, lease_s))
    if locks:
        table.database.write_now(partial(_hold, term))
    _say_and_wait()


if __name__ == "__main__":
    asyncio.run(_lead(sys.argv[1], float(sys.argv[2]), locks=len(sys.argv) == 3))
