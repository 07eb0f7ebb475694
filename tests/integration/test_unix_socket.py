"""A controller at a Unix socket: jobs reach it from a network namespace without any way out, and commands too."""

import asyncio
import json
import stat
import sys
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.controller_process import ControllerProcess, ControllerProcessError
from hostlib import BlockingClient, Client
from hostlib.connection import Connection
from tests.hostlib.served import GPT, RING
from tests.integration.fabrics import DUMBBELL
from tests.namespaces import namespaces
from tests.patience import PATIENCE_S
from trainyard.cli.application import application

pytestmark = pytest.mark.slow

_JOB = textwrap.dedent(
    """
    import socket, sys
    from hostlib import BlockingClient, Flow, FlowGroup, Job, Nic, Profile

    assert [name for _, name in socket.if_nameindex()] == ["lo"], socket.if_nameindex()
    with BlockingClient(sys.argv[1]) as client:
        client.register_job(Job("inside", ("h0", "h2"), 16, Profile(1.0, 0.5, 16.0)))
        client.register_flow_groups("inside", [FlowGroup("ring", (Flow(Nic("h0"), Nic("h2"), 10**9),))])
        flow = next(told.flows[0] for told in client.directives("inside") if told.flows)
        print(flow.flow_group, flow.level)
    """
)


def config(path: Path) -> ControllerConfig:
    """A controller's configuration, for switches that nobody runs."""
    switches = tuple(SwitchAddress(name=name, address="127.0.0.1:1") for name in ("t0", "t1"))
    return ControllerConfig(listen=f"unix:{path}", topology=DUMBBELL, switches=switches)


def test_a_job_in_a_namespace_without_interfaces_gets_its_directives(tmp_path: Path) -> None:
    path = tmp_path / "controller.sock"

    async def scenario() -> None:
        with namespaces("inside") as made:
            async with ControllerProcess(config(path)) as controller:
                assert controller.address == f"unix:{path}"
                command = made.command("inside", sys.executable, "-c", _JOB, controller.address)
                job = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
                assert job.stdout is not None
                assert (await job.stdout.read()).decode().startswith("ring ")
                assert await job.wait() == 0

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_every_client_reaches_it_and_its_owner_alone_may(tmp_path: Path) -> None:
    path = tmp_path / "controller.sock"

    def use(address: str) -> None:
        with BlockingClient(["127.0.0.1:1", address]) as client:
            client.register_job(GPT)
            client.register_flow_groups("gpt", [RING])
            assert client.acknowledged("gpt", PATIENCE_S)
            shown = CliRunner().invoke(application, ["show", "jobs", "--json", "--controller", address])
            assert [job["name"] for job in json.loads(shown.stdout)["jobs"]] == ["gpt"]
            ended = CliRunner().invoke(application, ["withdraw", "gpt", "--controller", address])
            assert ended.stdout == "withdrawn: job 'gpt' with 1 flow group\n"

    async def scenario() -> None:
        async with ControllerProcess(config(path)) as controller:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            await asyncio.to_thread(use, controller.address)
            async with Client(controller.address) as client, Connection(controller.address) as connection:
                client.register_job(GPT)
                assert await client.acknowledged("gpt", PATIENCE_S)
                assert await connection.plan()
        assert not path.exists()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_a_dead_controllers_socket_is_replaced_and_a_living_ones_left(tmp_path: Path) -> None:
    path = tmp_path / "controller.sock"

    async def scenario() -> None:
        async with ControllerProcess(config(path)) as killed:
            await killed.kill()
            assert path.is_socket()
            async with ControllerProcess(config(path)) as controller:
                with pytest.raises(ControllerProcessError, match=rf"unix:{path}: another server listens there"):
                    await ControllerProcess(config(path)).__aenter__()
                async with Connection(controller.address) as connection:
                    await connection.register_job(GPT)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
