"""The blocking client never hangs a job: without a controller, at interpreter exit, or in forked children."""

import asyncio
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hostlib.blocking import BlockingClient
from tests.hostlib.served import GPT, RING, Served, served
from tests.patience import PATIENCE_S


@contextmanager
def _serving() -> Iterator[Served]:
    """A controller in a thread with its own event loop."""
    started, stop = threading.Event(), asyncio.Event()
    found: list[Served] = []

    async def serve() -> None:
        async with served() as controller:
            found.append(controller)
            started.set()
            await stop.wait()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait(PATIENCE_S)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def _run(program: str, *arguments: str) -> str:
    """Return what a program prints; it must end by itself."""
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout


def test_a_job_without_an_event_loop_registers_and_is_told() -> None:
    with _serving() as controller, BlockingClient(controller.address) as client:
        client.register_job(GPT)
        client.register_flow_groups("gpt", [RING])
        assert client.acknowledged("gpt", PATIENCE_S)
        assert len(client.five_tuples("gpt")["ring"]) == 2
        stream = client.directives("gpt")
        assert next(directives for directives in stream if directives.flows).flows[0].flow_group == "ring"
        client.start_flow_groups("gpt", ["ring"], iteration=3)
        assert client.acknowledged("gpt", PATIENCE_S)
        assert controller.registry.instances("gpt")["ring"].iteration == 3
        with pytest.raises(ValueError, match="'bert' is not registered"):
            client.register_flow_groups("bert", [RING])
        client.deregister("gpt")
        assert all(directives.plan_number for directives in stream)


def test_a_closed_client_does_nothing_and_says_that_nothing_is_known() -> None:
    client = BlockingClient("127.0.0.1:1")
    client.register_job(GPT)
    client.close()
    client.close()
    client.register_flow_groups("gpt", [RING])
    assert client.newest_directives("gpt") is None
    assert not client.acknowledged("gpt", 1.0)
    assert list(client.directives("gpt")) == []


_JOB = """
import sys, threading
from hostlib import BlockingClient, Job, Profile
client = BlockingClient(sys.argv[1])
client.register_job(Job("gpt", ("h0", "h2"), 16, Profile(1.0, 0.5, 16.0)))
"""


def test_the_interpreter_ends_though_nobody_closed_the_client_and_a_thread_waits_for_directives() -> None:
    program = _JOB + 'threading.Thread(target=lambda: list(client.directives("gpt"))).start()\nprint("done")'
    assert _run(program, "127.0.0.1:1") == "done\n"
    with _serving() as controller:
        assert _run(program, controller.address) == "done\n"


def test_a_forked_child_has_no_part_in_the_registration_and_ends() -> None:
    program = _JOB + textwrap.dedent(
        """
        import os
        assert client.acknowledged("gpt", 120.0)
        child = os.fork()
        if child == 0:
            client.deregister("gpt")
            client.close()
            sys.exit(7 if client.newest_directives("gpt") is None else 8)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        client.report_profile("gpt", Profile(2.0, 0.5, 16.0))
        assert client.acknowledged("gpt", 120.0)
        print("still registered")
        """
    )
    with _serving() as controller:
        assert _run(program, controller.address) == "still registered\n"
        assert [job.request.profile.compute_s for job in controller.registry.jobs] == [2.0]
