"""A job whose process is killed stops renewing its lease; when that has ended its rules are gone from the switches."""

import asyncio
import signal
import sys
import textwrap

from emulator.entries import EntryAction, EntryKey
from tests.integration.fabrics import ServedFabric, controlled, served_dumbbell

_LEASE_S = 1.0
_PATIENCE_S = 20.0

# A training process as a user would write it: registers, and renews its lease as long as it lives.
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
                await asyncio.sleep(0.2)

    asyncio.run(main(sys.argv[1]))
    """
)


async def _start_job(address: str, name: str) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _JOB, address, name, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), _PATIENCE_S) == b"registered\n"
    return process


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
            async with asyncio.timeout(_PATIENCE_S):
                while len(_flow_rules(served)) == with_both:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(2 * _LEASE_S)
            return with_both, right_after, len(_flow_rules(served))
        finally:
            living.kill()
            await living.wait()


def test_the_rules_of_a_killed_job_go_and_those_of_a_living_one_stay() -> None:
    with_both, right_after, in_the_end = asyncio.run(_kill_one_of_two())
    assert (with_both, right_after, in_the_end) == (2, 2, 1)
