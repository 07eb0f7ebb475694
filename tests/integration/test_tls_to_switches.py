"""Controller and emulated switches speak TLS with certificates on both sides, over P4Runtime and gNMI."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from pathlib import Path

import grpc.aio
import pytest
from finsy.proto import gnmi, gnmi_grpc, p4r, p4r_grpc

from controller.access.tls_files import TlsFiles
from controller.config import ControllerConfig
from controller.links.port_states import PortStateTable
from controller.southbound.gnmi import GnmiPortMonitor
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.southbound.southbound import SwitchCondition
from controller.switch_addresses import SwitchAddress
from emulator.compiler.program import Program, compile_program
from emulator.fabric import EmulatedFabric
from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.server import serve, serve_each
from emulator.p4runtime.service import P4RuntimeService
from emulator.p4runtime.tls import ServerTls
from p4src import P4INFO, PROGRAM
from tests.certificates import Authority
from tests.integration.fabrics import DUMBBELL
from tests.patience import PATIENCE_S, until
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing

_ELECTION_ID = ControllerConfig.model_fields["election_id"].default
_PIPELINE = ControllerConfig.model_fields["pipeline"].default


@cache
def _program() -> Program:
    return compile_program(PROGRAM.read_text())


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def server_tls(authority: Authority) -> ServerTls:
    own = authority.issue("switch")
    return ServerTls(own.certificate, own.key, authority.ca)


@pytest.fixture
def client_tls(authority: Authority) -> TlsFiles:
    own = authority.issue("controller")
    return TlsFiles(ca=authority.ca, certificate=own.certificate, key=own.key)


def _service() -> P4RuntimeService:
    emulated = EmulatedFabric(DUMBBELL.build(), _program())
    emulated.run(0)
    pipeline = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())
    return P4RuntimeService(emulated.switches.values(), pipeline, asyncio.Lock())


@asynccontextmanager
async def _serving(tls: ServerTls) -> AsyncIterator[list[SwitchAddress]]:
    service = _service()
    async with serve_each(service, credentials=tls) as ports:
        yield [
            SwitchAddress(name=switch.name, address=f"127.0.0.1:{ports[switch.name]}", device_id=switch.device_id)
            for switch in service.switches
        ]


def _southbound(addresses: list[SwitchAddress], tls: TlsFiles | None) -> P4RuntimeSouthbound:
    fabric = DUMBBELL.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, seed=1))
    return P4RuntimeSouthbound(addresses, routing, _PIPELINE, _ELECTION_ID, tls=tls)


def test_switches_are_programmed_and_tell_their_ports(server_tls: ServerTls, client_tls: TlsFiles) -> None:
    async def scenario() -> None:
        async with _serving(server_tls) as addresses:
            ports = PortStateTable(address.name for address in addresses)
            async with (
                _southbound(addresses, client_tls) as southbound,
                GnmiPortMonitor(addresses, ports, client_tls),
                asyncio.timeout(PATIENCE_S),
            ):
                await southbound.caught_up()
                await ports.all_heard()
                assert all(ports.states.values())

    asyncio.run(scenario())


def test_plain_text_no_certificate_and_that_of_a_stranger_are_refused(
    server_tls: ServerTls, authority: Authority, tmp_path: Path
) -> None:
    async def refused(channel: grpc.aio.Channel) -> None:
        async with channel:
            for call in (
                p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=PATIENCE_S),
                gnmi_grpc.gNMIStub(channel).Capabilities(gnmi.CapabilityRequest(), timeout=PATIENCE_S),
            ):
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await call
                assert error.value.code() is grpc.StatusCode.UNAVAILABLE

    async def scenario() -> None:
        (tmp_path / "elsewhere").mkdir()
        stranger = Authority(tmp_path / "elsewhere", "stranger").issue("controller")
        ca = authority.ca.read_bytes()
        async with _serving(server_tls) as (address, *_):
            await refused(grpc.aio.insecure_channel(address.address))
            await refused(grpc.aio.secure_channel(address.address, grpc.ssl_channel_credentials(ca)))
            pair = stranger.key.read_bytes(), stranger.certificate.read_bytes()
            await refused(grpc.aio.secure_channel(address.address, grpc.ssl_channel_credentials(ca, *pair)))

    asyncio.run(scenario())


def test_a_controller_in_plain_text_does_not_reach_switches_with_tls(server_tls: ServerTls) -> None:
    async def scenario() -> None:
        async with _serving(server_tls) as addresses, _southbound(addresses, None) as southbound:
            await until(lambda: all("UNAVAILABLE" in status.problem for status in southbound.statuses()))
            assert {status.condition for status in southbound.statuses()} == {SwitchCondition.AWAY}

    asyncio.run(scenario())


def test_renewed_files_are_used_for_the_next_connection(
    server_tls: ServerTls, client_tls: TlsFiles, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            async with serve(service := _service(), credentials=server_tls) as port:
                addresses = [
                    SwitchAddress(name=switch.name, address=f"127.0.0.1:{port}", device_id=switch.device_id)
                    for switch in service.switches
                ]
                southbound = await stack.enter_async_context(_southbound(addresses, client_tls))
                async with asyncio.timeout(PATIENCE_S):
                    await southbound.caught_up()
            # Everything is from another authority from now on, in files of the same names.
            renewed = Authority(tmp_path)
            renewed.issue("switch")
            renewed.issue("controller")
            await stack.enter_async_context(serve(_service(), f"127.0.0.1:{port}", server_tls))
            async with asyncio.timeout(PATIENCE_S):
                await southbound.caught_up(down=[address.name for address in addresses])
                await southbound.caught_up()

    asyncio.run(scenario())
