"""A process that has a controller write large batches: jobs come with many flow groups, and go.

``python -m tests.chaos.writing ADDRESS NAME`` goes on until it is killed. It prints ``+JOB`` once a job is acknowledged
with all its flow groups, and ``-JOB`` before it asks for its withdrawal.
"""

import asyncio
import sys
from itertools import count

from hostlib.connection import Connection
from hostlib.errors import ControllerError
from hostlib.types import Flow, FlowGroup, Job, Nic, Profile

NUM_GROUPS = 1_000
_MOST_JOBS = 4
_PAUSE_S = 0.05
_DEADLINE_S = 5.0
_GROUPS = tuple(FlowGroup(f"g{number}", (Flow(Nic("h0"), Nic("h2"), 10**6),)) for number in range(NUM_GROUPS))


async def _write(address: str, name: str) -> None:
    async with Connection(address, "owner", _DEADLINE_S) as connection:
        for number in count():
            # The same few names, so that none stays behind when this process is replaced by another.
            job = Job(f"{name}-{number % _MOST_JOBS}", ("h0", "h2"), 2, Profile(1.0, 0.5, 1.0))
            print(f"-{job.name}", flush=True)
            try:
                await connection.deregister(job.name)
                await connection.register_job(job)
                await connection.register_flow_groups(job.name, _GROUPS)
                print(f"+{job.name}", flush=True)
            except ControllerError:
                await asyncio.sleep(_PAUSE_S)


if __name__ == "__main__":
    asyncio.run(_write(sys.argv[1], sys.argv[2]))
