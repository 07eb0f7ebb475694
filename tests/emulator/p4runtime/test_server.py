"""Where and how the service is reached."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest
from finsy.grpcutil import GRPCCredentialsTLS, GRPCStatusCode
from finsy.p4client import P4Client, P4ClientError
from finsy.proto import p4r

from emulator.observations import PacketIn
from emulator.p4runtime.pipeline import Pipeline
from emulator.p4runtime.server import serve, serve_each
from emulator.p4runtime.service import P4RuntimeService
from emulator.p4runtime.tls import ServerTls
from tests.certificates import Authority
from tests.emulator.p4runtime.clients import advice, bid, run, set_pipeline
from tests.emulator.p4runtime.fake_switch import FakeSwitch

CAPABILITIES = p4r.CapabilitiesRequest()


def service_of(pipeline: Pipeline) -> P4RuntimeService:
    return P4RuntimeService([FakeSwitch(1), FakeSwitch(2)], pipeline, asyncio.Lock())


def test_each_switch_has_its_own_address_and_is_the_same_device_on_all(pipeline: Pipeline) -> None:
    commit = set_pipeline(p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, pipeline.message)

    async def test() -> None:
        service = service_of(pipeline)
        async with (
            serve(service) as together,
            serve_each(service) as ports,
            P4Client(f"127.0.0.1:{ports['switch1']}") as client,
            P4Client(f"127.0.0.1:{ports['switch2']}") as stranger,
            P4Client(f"127.0.0.1:{together}") as rival,
        ):
            assert list(ports) == ["switch1", "switch2"]
            await bid(stranger, 5)
            with pytest.raises(P4ClientError, match="there is no device 1"):
                await stranger.receive()
            await bid(client, 5)
            assert await advice(client) == ("OK", 5)
            await client.request(commit)
            service.deliver([PacketIn("switch1", 0, b"\0\0x")])
            assert (await client.receive()).packet.payload == b"x"
            await bid(rival, 6)
            assert await advice(client) == ("ALREADY_EXISTS", 6)

    run(test())


def test_ports_count_up_from_the_first(pipeline: Pipeline) -> None:
    async def test() -> None:
        service = service_of(pipeline)
        async with serve(service.alone(service.switches[0])) as free:
            pass
        async with serve_each(service, first_port=free) as ports:
            assert ports == {"switch1": free, "switch2": free + 1}
            with pytest.raises(OSError, match=f"127.0.0.1:{free} is taken or cannot be bound"):
                async with serve(service, f"127.0.0.1:{free}"):
                    pass

    run(test())


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two authorities, a server of the first and a client of either."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority(folder)
    for name in ("server", "client"):
        authority.issue(name)
    Authority(folder, "stranger").issue("intruder")
    return folder


def tls_of(folder: Path) -> ServerTls:
    return ServerTls(folder / "server.pem", folder / "server.key", folder / "authority.pem")


def client_of(folder: Path, name: str | None) -> GRPCCredentialsTLS:
    certificate, key = (folder / f"{name}.pem", folder / f"{name}.key") if name else (None, None)
    return GRPCCredentialsTLS(cacert=folder / "authority.pem", cert=certificate, private_key=key)


def test_only_clients_with_a_certificate_of_the_authority_are_served(pipeline: Pipeline, certificates: Path) -> None:
    async def test() -> None:
        async with serve(service_of(pipeline), credentials=tls_of(certificates)) as port:
            address = f"127.0.0.1:{port}"
            async with P4Client(address, client_of(certificates, "client")) as client:
                await client.request(CAPABILITIES)
            for credentials in (client_of(certificates, "intruder"), client_of(certificates, None), None):
                async with P4Client(address, credentials) as client:
                    with pytest.raises(P4ClientError) as error:
                        await client.request(CAPABILITIES)
                    assert error.value.code is GRPCStatusCode.UNAVAILABLE

    run(test())


@pytest.mark.parametrize("part", ["certificate_chain", "private_key", "client_authorities"])
def test_files_that_cannot_be_used_are_named(certificates: Path, tmp_path: Path, part: str) -> None:
    torn = tmp_path / "torn.pem"
    torn.write_text("-----BEGIN CERTIFICATE-----\n")
    for path in (torn, tmp_path / "absent.pem"):
        with pytest.raises(ValueError, match=re.escape(str(path))):
            replace(tls_of(certificates), **{part: path}).credentials()


def test_a_key_of_another_certificate_is_refused(certificates: Path) -> None:
    with pytest.raises(ValueError, match=r"server.pem and .*client.key are not a key pair"):
        replace(tls_of(certificates), private_key=certificates / "client.key").credentials()
