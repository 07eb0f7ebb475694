"""Agents of two hosts, connected by a cable between two namespaces, with a controller that records exchanges."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from ipaddress import IPv4Address
from pathlib import Path

import grpc.aio
import pytest

from hostlib import agent
from hostlib.connection import Connection
from hostlib.telemetry.host_agent import HostAgent
from hostlib.telemetry.interfaces import Interface
from hostlib.telemetry.probe_agent import ProbeAgent
from hostlib.telemetry.sockets import ProbeSockets
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from hostlib.wire.session_window import SESSION_SILENCE_S
from tests.namespaces import Namespaces, namespaces
from tests.patience import PATIENCE_S, until
from tests.ports import free_port

pytestmark = pytest.mark.slow

HOSTS = {"here": IPv4Address("10.0.0.1"), "there": IPv4Address("10.0.0.2")}
PORTS = (50_000, 50_001, 50_002)


class NotedController:
    """Answers every exchange with the same targets and records it; can be set to refuse."""

    def __init__(self) -> None:
        self.refuses = False
        self.exchanges: list[wire.ExchangeProbesRequest] = []
        self._server: grpc.aio.Server | None = None

    async def start(self, address: str = "127.0.0.1:0") -> str:
        """Listen; returns the address."""
        method = methods.EXCHANGE_PROBES
        answer = grpc.unary_unary_rpc_method_handler(
            self._answer,
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )
        self._server = grpc.aio.server()
        handler = grpc.method_handlers_generic_handler(methods.SERVICE, {method.name: answer})
        self._server.add_generic_rpc_handlers((handler,))
        port = self._server.add_insecure_port(address)
        await self._server.start()
        return f"127.0.0.1:{port}"

    async def stop(self) -> None:
        assert self._server is not None
        await self._server.stop(None)

    def reports(self, host: str, session: int | None = None) -> list[wire.ProbeReport]:
        """Return the reports of a host, of one session of the sender or of all."""
        told = [report for exchange in self.exchanges if exchange.host == host for report in exchange.reports]
        return [report for report in told if session in (None, report.session)]

    async def _answer(
        self,
        request: wire.ExchangeProbesRequest,
        context: grpc.aio.ServicerContext[wire.ExchangeProbesRequest, wire.ExchangeProbesResponse],
    ) -> wire.ExchangeProbesResponse:
        if self.refuses:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "owner_token: somebody else's")
        self.exchanges.append(request)
        (destination,) = (address for host, address in HOSTS.items() if host != request.host)
        target = wire.ProbeTarget(
            source_address=int(HOSTS[request.host]),
            destination_address=int(destination),
            protocol=17,
            destination_port=4791,
            source_ports=PORTS,
        )
        return wire.ExchangeProbesResponse(interval_s=0.05, targets_version=1, targets=[target])


@pytest.fixture
def cabled() -> Iterator[Namespaces]:
    with namespaces(*HOSTS) as made:
        made.cable(("here", "eth0"), ("there", "eth0"))
        for host, address in HOSTS.items():
            made.ip(host, "address", "add", f"{address}/24", "dev", "eth0")
        yield made


@asynccontextmanager
async def at_work(cabled: Namespaces, host: str, address: str, session: int) -> AsyncIterator[HostAgent]:
    """A host's agent inside a namespace, with the controller of this process."""
    with cabled.entered(host):
        sockets = ProbeSockets(Interface("eth0", HOSTS[host], 10e9))
    with closing(sockets):
        async with Connection(address, deadline_s=PATIENCE_S) as connection:
            agent = HostAgent(ProbeAgent(host, {HOSTS[host]: 10e9}, session), [sockets], connection)
            running = asyncio.create_task(agent.run())
            try:
                yield agent
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)


def ports_of(reports: list[wire.ProbeReport]) -> set[int]:
    return {report.five_tuple.source_port for report in reports}


def test_what_one_sends_the_other_reports(cabled: Namespaces) -> None:
    async def scenario() -> None:
        controller = NotedController()
        address = await controller.start()
        async with at_work(cabled, "here", address, 7) as here, at_work(cabled, "there", address, 8):
            await until(lambda: ports_of(controller.reports("there")) == {*PORTS})
            await until(lambda: ports_of(controller.reports("here")) == {*PORTS})
            status = here.status()
        assert {report.session for report in controller.reports("there")} == {7}
        assert {report.five_tuple.source_address for report in controller.reports("here")} == {int(HOSTS["there"])}
        assert (status.targets, status.unsent, status.dropped, status.problem) == (1, {}, {}, None)
        assert status.sent >= len(PORTS) <= status.received
        await controller.stop()

    asyncio.run(scenario())


def test_an_agent_that_comes_back_is_believed_from_its_first_probe_on(cabled: Namespaces) -> None:
    async def scenario() -> None:
        controller = NotedController()
        address = await controller.start()
        async with at_work(cabled, "there", address, 1) as there:
            for session in (5, 6):
                async with at_work(cabled, "here", address, session):
                    await until(lambda session=session: ports_of(controller.reports("there", session)) == {*PORTS})
                    first = controller.reports("there", session)[0]
                    assert first.sequence == 0
                await asyncio.sleep(1.2 * SESSION_SILENCE_S)  # as an agent waits that starts
            assert there.status().dropped == {}
        await controller.stop()

    asyncio.run(scenario())


def test_an_interface_that_goes_away_ends_the_agent(cabled: Namespaces) -> None:
    async def scenario() -> None:
        controller = NotedController()
        address = await controller.start()
        with cabled.entered("here"):
            sockets = ProbeSockets(Interface("eth0", HOSTS["here"], 10e9))
        with closing(sockets):
            async with Connection(address) as connection:
                agent = HostAgent(ProbeAgent("here", {HOSTS["here"]: 10e9}, 1), [sockets], connection)
                running = asyncio.create_task(agent.run())
                await until(lambda: agent.status().sent > 0)
                cabled.ip("here", "link", "set", "eth0", "down")
                await until(lambda: bool(agent.status().unsent))
                assert not running.done()
                cabled.ip("here", "link", "delete", "eth0")
                with pytest.raises(OSError, match="eth0: the interface is gone"):
                    async with asyncio.timeout(PATIENCE_S):
                        await running
        await controller.stop()

    asyncio.run(scenario())


def test_probing_goes_on_while_the_controller_is_away(cabled: Namespaces, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        controller = NotedController()
        address = await controller.start(f"127.0.0.1:{free_port()}")
        async with at_work(cabled, "here", address, 1) as here, at_work(cabled, "there", address, 1):
            await until(lambda: here.status().problem is None and bool(controller.reports("there")))
            await controller.stop()
            await until(lambda: here.status().problem is not None)
            sent = here.status().sent
            await until(lambda: here.status().sent > sent)
            controller.exchanges.clear()
            controller.refuses = True
            await controller.start(address)
            refused = "still probing, and trying again: owner_token: somebody else's"
            await until(lambda: here.status().problem == refused)
            controller.refuses = False
            await until(lambda: here.status().problem is None and bool(controller.reports("there")))
        await controller.stop()
        said = [message for message in caplog.messages if message.startswith("here: ")]
        assert said[0] == "here: the controller answers"
        assert said[-2:] == [
            "here: still probing, and trying again: owner_token: somebody else's",
            "here: the controller answers",
        ]

    asyncio.run(scenario())


def test_a_host_of_another_name_is_told_what_is_wrong(cabled: Namespaces) -> None:
    async def scenario() -> None:
        controller = NotedController()
        address = await controller.start()
        with cabled.entered("here"):
            sockets = ProbeSockets(Interface("eth0", HOSTS["here"], 10e9))
        with closing(sockets):
            async with Connection(address) as connection:
                agent = HostAgent(ProbeAgent("there", {HOSTS["here"]: 10e9}, 1), [sockets], connection)
                running = asyncio.create_task(agent.run())
                await until(lambda: agent.status().exchanges > 1)
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                status = agent.status()
        assert (status.targets, status.sent) == (0, 0)
        assert status.problem is not None
        assert "from 10.0.0.2, which no NIC of it has (10.0.0.1): look at --host there" in status.problem
        await controller.stop()

    asyncio.run(scenario())


@contextmanager
def command(cabled: Namespaces, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the agent of the host ``here`` as a process, and end it in any case."""
    line = (sys.executable, "-m", "hostlib.agent", "--host", "here", *arguments)
    process = subprocess.Popen(cabled.command("here", *line), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_command_says_what_it_does_and_ends_when_told(cabled: Namespaces, tmp_path: Path) -> None:
    token = tmp_path / "token"
    options = ("--nic", "eth0@10", "--controller", "127.0.0.1:9", "--owner-token-file", str(token), "--json")
    with command(cabled, *options) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stderr.readline() == "probing for here by eth0 (10.0.0.1, 10 Gbit/s)\n"
        assert "here: still probing, and trying again: " in process.stderr.readline()
        process.send_signal(signal.SIGUSR1)
        status = json.loads(process.stdout.readline())
        assert (status["host"], status["sent"], status["exchanges"]) == ("here", 0, 0)
        assert "127.0.0.1:9" in status["problem"]
        process.terminate()
        output, errors = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, errors) == (0, "")
        assert [json.loads(line)["host"] for line in output.splitlines()] == ["here"]
    assert len(token.read_text()) == 32
    assert token.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("options", "status", "problem"),
    [
        (("--nic", "eth7"), 2, "--nic eth7: there is no such interface; there are lo, eth0"),
        (("--nic", "eth0=10.0.0.1@1", "--nic", "lo=10.0.0.1@1"), 2, "--nic eth0: address 10.0.0.1 is repeated"),
        (("--nic", "eth0=10.0.0.7@1"), 1, "the agent failed: eth0 with address 10.0.0.7: Cannot assign requested"),
        (("--nic", "eth0@1", "--owner-token-file", "/proc/none"), 2, "--owner-token-file /proc/none: "),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    cabled: Namespaces, options: tuple[str, ...], status: int, problem: str
) -> None:
    with command(cabled, *options) as process:
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == status
        assert errors.startswith(problem)


def test_an_address_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        agent.main(["--host", "here", "--nic", "lo@1", "--controller", "h:1", "--controller", "nowhere"])
    assert ended.value.code == 2
    said = "argument --controller: expected HOST:PORT with a port from 1 to 65535, or unix:/PATH, got 'nowhere'"
    assert said in capsys.readouterr().err


def test_without_the_capability_it_says_which(cabled: Namespaces) -> None:
    without = ("setpriv", "--bounding-set", "-net_raw")
    line = (*without, sys.executable, "-m", "hostlib.agent", "--host", "here", "--nic", "eth0@1")
    process = subprocess.run(
        cabled.command("here", *line), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert process.returncode == 1
    assert process.stderr.startswith("the agent failed: eth0: probing needs the capability CAP_NET_RAW")
