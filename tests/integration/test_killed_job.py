"""A killed job no longer renews its lease; when that expires, the switches lose the job's rules."""

import asyncio
import signal
import sys
import textwrap

from emulator.entries import EntryAction, EntryKey
from tests.integration.fabrics import ServedFabric, controlled, served_dumbbell
from tests.patience import PATIENCE_S, until

_LEASE_S = 10.0
_RENEWALS_AFTER = 5

# A training process as a user would write it: registers, renews its lease as long as it lives, and says so.
_JOB = textwrap.dedent(
    """
    import asyncio, sys
    from hostlib import Flow, FlowGroup, Job, Nic, Profile
    from hostlib.connection import Connection

    async def main(address):
        async with Connection(address) as client:
            await client.register_job(Job(sys.argv[2], ("h0", "h2"), 16, Profile(1.0, 0.5, 16.0)))
            flow = Flow(Nic("h0"), Nic("h2"), 1_000_000_000)
            await client.register_flow_groups(sys.argv[2], [FlowGroup("gradients", (flow,))])
            async for directives in client.directives(sys.argv[2]):
                if directives.flows:
                    break
            print("registered", flush=True)
            while True:
                await client.heartbeat(sys.argv[2])
                print("renewed", flush=True)
                await asyncio.sleep(0.2)

    asyncio.run(main(sys.argv[1]))
    """
)


async def _start_job(address: str, name: str) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _JOB, address, name, stdout=asyncio.subprocess.PIPE
    )
    assert await _said(process) == b"registered\n"
    return process


async def _said(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    return await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)


async def _renewals(process: asyncio.subprocess.Process) -> None:
    """Read renewals as they come, until cancelled."""
    while await _said(process) == b"renewed\n":
        pass


def _flow_rules(served: ServedFabric) -> list[tuple[EntryKey, EntryAction]]:
    return [entry for switch in served.emulated.switches.values() for entry in switch.entries("ingress.flow")]


async def _kill_one_of_two() -> tuple[int, int, int]:
    async with served_dumbbell() as served, controlled(served, _LEASE_S) as process:
        killed, living = [await _start_job(process.address, name) for name in ("killed", "living")]
        try:
            with_both = len(_flow_rules(served))
            killed.send_signal(signal.SIGKILL)
            await killed.wait()
            right_after = len(_flow_rules(served))
            # The job that lives has not registered again, so that its first lease has ended by then as well.
            living_on = asyncio.create_task(_renewals(living))
            await until(lambda: len(_flow_rules(served)) < with_both)
            living_on.cancel()
            await asyncio.gather(living_on, return_exceptions=True)
            for _ in range(_RENEWALS_AFTER):
                assert await _said(living) == b"renewed\n"
            return with_both, right_after, len(_flow_rules(served))
        finally:
            living.kill()
            await living.wait()


def test_only_the_rules_of_the_killed_job_are_deleted() -> None:
    with_both, right_after, in_the_end = asyncio.run(_kill_one_of_two())
    assert (with_both, right_after, in_the_end) == (2, 2, 1)
