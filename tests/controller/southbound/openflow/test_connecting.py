"""Connections that the controller opens, and TLS both ways."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from controller.access.reloading_file import UnusableFileError
from controller.access.tls_files import TlsFiles
from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.channel_errors import Misbehaviour
from controller.southbound.openflow.connecting import keep_connected
from controller.southbound.openflow.connections import OpenFlowConnections
from tests.certificates import Authority
from tests.controller.southbound.openflow.fake_switch import FakeSwitch, flow_mod
from tests.controller.southbound.openflow.listening import PATIENT, connected, in_time, listening, num_refused
from tests.controller.southbound.openflow.switched import LISTEN, addresses_of
from tests.patience import until


class _Connecting:
    """Channels to a switch that listens, and why attempts and connections have ended."""

    def __init__(self) -> None:
        self.channels: list[OpenFlowChannel] = []
        self.ends: list[str] = []

    @asynccontextmanager
    async def to(
        self,
        address: str,
        datapath_id: int = 1,
        tls: TlsFiles | None = None,
        certificate_name: str | None = None,
    ) -> AsyncIterator[None]:
        on_channel, on_end = self.channels.append, self.ends.append
        task = asyncio.create_task(
            keep_connected(address, datapath_id, on_channel, on_end, tls, PATIENT, certificate_name)
        )
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()


def test_a_switch_that_listens_is_connected_again_after_it_was_lost() -> None:
    async def run() -> None:
        switch, connecting = FakeSwitch(), _Connecting()
        async with connecting.to(await switch.listen()):
            await until(lambda: len(connecting.channels) == 1)
            await connecting.channels[0].write([flow_mod(6, "a")])
            switch.close()
            await until(lambda: len(connecting.channels) == 2)
            assert len(connecting.ends) == 1
            await connecting.channels[1].write([flow_mod(6, "b")])
            assert switch.flows == ["a", "b"]
        assert connecting.channels[1].closed_because == "the controller has closed the connection"

    in_time(run)


def test_a_switch_that_is_not_there_is_tried_until_it_is() -> None:
    async def run() -> None:
        switch, connecting = FakeSwitch(), _Connecting()
        address = await switch.listen()
        switch.server.close()
        await switch.server.wait_closed()
        async with connecting.to(address):
            await until(lambda: len(connecting.ends) == 2)
            assert all("refused" in each.lower() or "connect call failed" in each.lower() for each in connecting.ends)
            port = int(address.rpartition(":")[2])
            switch.server = await asyncio.start_server(switch.take, "127.0.0.1", port)
            await until(lambda: len(connecting.channels) == 1)

    in_time(run)


def test_another_switch_at_the_address_is_refused() -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.UNKNOWN)
        switch, connecting = FakeSwitch(2), _Connecting()
        async with connecting.to(await switch.listen()):
            await until(lambda: bool(connecting.ends))
        assert connecting.ends[0] == "the switch has the datapath id 0x2, not 0x1"
        assert num_refused(Misbehaviour.UNKNOWN) > before
        assert connecting.channels == []

    in_time(run)


def _files(authority: Authority, name: str) -> TlsFiles:
    own = authority.issue(name)
    return TlsFiles(ca=authority.ca, certificate=own.certificate, key=own.key)


def _context(authority: Authority, trusted: Authority, *, is_server: bool) -> ssl.SSLContext:
    own = authority.issue("switch")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(own.certificate, own.key)
    context.load_verify_locations(trusted.ca)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.mark.parametrize("minimum", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_switches_connect_by_tls_with_certificates_of_the_authority_alone(
    tmp_path: Path, minimum: ssl.TLSVersion
) -> None:
    authority, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")

    async def run() -> None:
        switch, stranger = FakeSwitch(1), FakeSwitch(2)
        async with listening([1, 2], tls=_files(authority, "controller")) as at:
            trusted, foreign = (_context(each, authority, is_server=False) for each in (authority, other))
            trusted.minimum_version = minimum
            foreign.maximum_version = minimum
            await switch.connect(at.address, trusted)
            await until(lambda: len(at.channels) == 1)
            before = num_refused(Misbehaviour.TLS)
            try:
                await stranger.connect(at.address, foreign)
                await stranger.has_ended.wait()
            except OSError:
                pass  # in TLS 1.2 the handshake itself fails
            await until(lambda: num_refused(Misbehaviour.TLS) == before + 1)
            await at.channels[0].write([flow_mod(6, "a")])
            assert switch.flows == ["a"]
            assert len(at.channels) == 1
        switch.close()

    in_time(run)


def test_a_certificate_claims_no_switch_of_another_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The one that a switch shows is for the host 127.0.0.1, and its common name is ``switch``."""
    authority = Authority(tmp_path)
    names = {1: "Switch", 2: "leaf1.example", 3: "127.0.0.1"}

    async def run() -> None:
        switches = {number: FakeSwitch(number) for number in (1, 2, 3, 4)}
        files, context = _files(authority, "controller"), _context(authority, authority, is_server=False)
        async with listening(switches, tls=files, certificate_names=names) as at:
            for number in (1, 3, 4):
                await switches[number].connect(at.address, context)
            await until(lambda: {each.datapath_id for each in at.channels} == {1, 3, 4})
            before = num_refused(Misbehaviour.CERTIFICATE)
            await switches[2].connect(at.address, context)
            await switches[2].has_ended.wait()
            await until(lambda: num_refused(Misbehaviour.CERTIFICATE) == before + 1)
            words = "0x2: the certificate is for 127.0.0.1, switch, and has to be for leaf1.example"
            assert words in caplog.text
            assert len(at.channels) == 3

    in_time(run)


def test_the_controller_connects_to_no_switch_whose_certificate_is_another_ones(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def run() -> None:
        switch, connecting = FakeSwitch(1), _Connecting()
        address = await switch.listen(_context(authority, authority, is_server=True))
        files = _files(authority, "controller")
        async with connecting.to(address, tls=files, certificate_name="leaf1.example"):
            await until(lambda: bool(connecting.ends))
            assert connecting.ends[0].endswith("and has to be for leaf1.example")
            assert not connecting.channels
        async with connecting.to(address, tls=files, certificate_name="switch"):
            await until(lambda: bool(connecting.channels))

    in_time(run)


def test_plain_text_where_tls_is_expected_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.TLS)
        switch = FakeSwitch()
        async with listening([1], tls=_files(Authority(tmp_path), "controller")) as at:
            await switch.connect(at.address)
            await switch.has_ended.wait()
            await until(lambda: num_refused(Misbehaviour.TLS) == before + 1)

    in_time(run)
    assert "refused: plain text where TLS is expected" in caplog.text


def test_a_peer_that_begins_no_tls_is_given_up(tmp_path: Path) -> None:
    async def run() -> None:
        before = num_refused(Misbehaviour.SLOW)
        limits = replace(PATIENT, handshake_s=0.3)
        async with listening([1], limits, _files(Authority(tmp_path), "controller")) as at:
            host, _, port = at.address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            assert await reader.read() == b""
            await until(lambda: num_refused(Misbehaviour.SLOW) == before + 1)
            writer.close()

    in_time(run)


def test_a_renewed_certificate_serves_the_next_connection(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def run() -> None:
        shown: list[bytes | None] = []
        async with listening([1, 2], tls=_files(authority, "controller")) as at:
            for datapath_id in (1, 2):
                switch = FakeSwitch(datapath_id)
                await switch.connect(at.address, _context(authority, authority, is_server=False))
                await until(lambda expected=datapath_id: len(at.channels) == expected)
                shown.append(switch.certificate)
                switch.close()
                authority.issue("controller")
                await asyncio.sleep(1.1)  # files are looked at once a second
        assert shown[0] != shown[1]

    in_time(run)


def test_the_controller_connects_by_tls_to_switches_of_the_authority_alone(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")

    async def run() -> None:
        switch, connecting = FakeSwitch(), _Connecting()
        address = await switch.listen(_context(authority, authority, is_server=True))
        async with connecting.to(address, tls=_files(authority, "controller")):
            await until(lambda: bool(connecting.channels))
            await connecting.channels[0].write([flow_mod(6, "a")])
            assert switch.flows == ["a"]
        stranger, refusing = FakeSwitch(), _Connecting()
        address = await stranger.listen(_context(other, authority, is_server=True))
        async with refusing.to(address, tls=_files(authority, "controller")):
            await until(lambda: bool(refusing.ends))
            assert refusing.ends[0].startswith("its certificate is refused: ")
            assert refusing.channels == []

    in_time(run)


def test_files_that_cannot_be_used_are_named_at_the_start(tmp_path: Path) -> None:
    async def run() -> None:
        files = _files(Authority(tmp_path), "controller")
        files.key.write_text("no key")
        with pytest.raises(UnusableFileError, match=r"controller\.key.*: key: is no PEM private key"):
            async with listening([1], tls=files):
                pass

    in_time(run)


def test_an_address_that_cannot_be_bound_is_named() -> None:
    async def run() -> None:
        async with listening([1]) as at:
            with pytest.raises(OSError, match=f"openflow: cannot listen on {at.address}: "):
                async with at.listener.serving(at.address):
                    pass

    in_time(run)


def test_a_switch_is_connected_once_files_for_tls_can_be_used(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def run() -> None:
        switch, failures = FakeSwitch(), list[str]()
        address = await switch.listen(_context(authority, authority, is_server=True))
        files = _files(authority, "controller")
        hidden = files.key.rename(tmp_path / "hidden")
        connections = OpenFlowConnections(
            addresses_of(["t0"], connect=address), LISTEN.model_copy(update={"tls": files})
        )
        connections.on_failed = lambda _name, reason: failures.append(reason)
        async with connections.connected(None):
            await until(lambda: bool(failures))
            assert files.key.name in failures[0]
            hidden.rename(files.key)
            await until(lambda: connections.channels.keys() == {"t0"})

    in_time(run)


def test_small_messages_to_a_switch_that_connects_are_sent_at_once() -> None:
    """Or each write would wait 40 ms for the acknowledgement of what is before its barrier."""

    async def run() -> None:
        async with connected(FakeSwitch()) as channel:
            to_switch = channel._connection._writer.get_extra_info("socket")
            assert to_switch.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    in_time(run)
