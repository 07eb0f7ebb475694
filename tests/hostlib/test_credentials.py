"""Credentials: what may be combined, and what a real TLS server makes of them."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

from hostlib import BlockingClient, Client, Credentials, RefusalReason
from hostlib import channel as channel_module
from hostlib.connection import Connection
from hostlib.errors import RefusedError, UnreachableError
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from tests.certificates import Authority
from tests.hostlib.served import GPT
from tests.patience import PATIENCE_S, until

HEARTBEAT_S = 0.2


class Controller:
    """Answers registrations and heartbeats over mutual TLS; remembers who called, and may refuse."""

    def __init__(self) -> None:
        self.callers: list[str] = []
        self.tokens: list[str | None] = []
        self.wanted_token: str | None = None
        self.address = ""

    @contextlib.asynccontextmanager
    async def serving(self, authority: Authority) -> AsyncIterator[str]:
        certificate, key = authority.issue("controller")
        credentials = grpc.ssl_server_credentials(
            [(key.read_bytes(), certificate.read_bytes())], authority.ca.read_bytes(), require_client_auth=True
        )
        server = grpc.aio.server()
        handlers = {
            method.name: grpc.unary_unary_rpc_method_handler(
                answer, method.request.FromString, method.response.SerializeToString
            )
            for method, answer in (
                (methods.REGISTER_JOB, self._register),
                (methods.HEARTBEAT, self._heartbeat),
                (methods.DEREGISTER_JOB, self._deregister),
            )
        }
        handlers[methods.DIRECTIVES.name] = grpc.unary_stream_rpc_method_handler(
            self._directives, methods.DIRECTIVES.request.FromString, methods.DIRECTIVES.response.SerializeToString
        )
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(methods.SERVICE, handlers),))
        port = server.add_secure_port("127.0.0.1:0", credentials)
        await server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            await server.stop(None)

    async def _note(self, context: "grpc.aio.ServicerContext[object, object]") -> None:
        [name] = context.auth_context()["x509_common_name"]
        self.callers.append(name.decode())
        self.tokens.append(dict(context.invocation_metadata() or ()).get("authorization"))
        if self.wanted_token is not None and self.tokens[-1] != f"Bearer {self.wanted_token}":
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "token: expired")

    async def _register(self, _: object, context: "grpc.aio.ServicerContext[object, object]") -> object:
        await self._note(context)
        return wire.RegisterJobResponse(lease_s=3 * HEARTBEAT_S)

    async def _heartbeat(self, _: object, context: "grpc.aio.ServicerContext[object, object]") -> object:
        await self._note(context)
        return wire.HeartbeatResponse()

    async def _deregister(self, _: object, __: object) -> object:
        return wire.DeregisterJobResponse()

    async def _directives(self, _: object, __: object) -> AsyncIterator[object]:
        yield wire.DirectivesResponse(plan_number=1)
        await asyncio.Event().wait()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "_CHECK_S", 0.0)


def credentials_of(authority: Authority, name: str, **fields: Path | str) -> Credentials:
    certificate, key = authority.issue(name)
    return Credentials(ca=authority.ca, certificate=certificate, key=key, **fields)


def test_a_job_registers_over_mutual_tls_and_its_token_goes_with_every_call(
    authority: Authority, tmp_path: Path
) -> None:
    async def scenario() -> None:
        controller, token_file = Controller(), tmp_path / "token"
        token_file.write_text("first\n")
        credentials = credentials_of(authority, "job", token_file=token_file)
        async with controller.serving(authority) as address, Client(address, credentials=credentials) as client:
            client.register_job(GPT)
            assert await client.acknowledged("gpt", PATIENCE_S)
            assert set(controller.callers) == {"job"}
            assert set(controller.tokens) == {"Bearer first"}
            token_file.write_text("second\n")
            await until(lambda: controller.tokens[-1] == "Bearer second")

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_a_controller_of_another_ca_is_not_trusted_and_a_client_of_another_ca_not_let_in(
    authority: Authority, tmp_path: Path
) -> None:
    async def scenario() -> None:
        controller, other = Controller(), Authority(tmp_path / "other")
        ours, theirs = credentials_of(authority, "job"), credentials_of(other, "job")
        wrong = [
            theirs,
            Credentials(ca=other.ca, certificate=ours.certificate, key=ours.key),
            Credentials(ca=authority.ca, certificate=theirs.certificate, key=theirs.key),
            Credentials(ca=authority.ca),
            Credentials(),
        ]
        async with controller.serving(authority) as address:
            for credentials in wrong:
                async with Connection(address, credentials=credentials, deadline_s=PATIENCE_S) as connection:
                    with pytest.raises(UnreachableError):
                        await connection.register_job(GPT)
            assert controller.callers == []
            async with Connection(address, credentials=ours) as connection:
                await connection.register_job(GPT)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_a_renewed_certificate_is_shown_without_a_restart_and_half_of_one_is_not(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        controller, credentials = Controller(), credentials_of(authority, "job")
        assert credentials.certificate is not None
        assert credentials.key is not None
        certificate, key = authority.issue("renewed")
        async with controller.serving(authority) as address, Client(address, credentials=credentials) as client:
            client.register_job(GPT)
            assert await client.acknowledged("gpt", PATIENCE_S)
            shutil.copy(certificate, credentials.certificate)
            await until(lambda: bool(caplog.messages))
            num_calls = len(controller.callers)
            await until(lambda: len(controller.callers) > num_calls)
            assert set(controller.callers) == {"job"}
            shutil.copy(key, credentials.key)
            await until(lambda: controller.callers[-1] == "renewed")
            assert await client.acknowledged("gpt", PATIENCE_S)
            assert client.refusal("gpt") is None
        assert len(caplog.messages) == 1
        assert "still using the credentials from before" in caplog.messages[0]
        assert str(credentials.certificate) in caplog.messages[0]

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_a_job_without_a_valid_token_is_told_so_and_goes_on_when_it_is_renewed(
    authority: Authority, tmp_path: Path
) -> None:
    async def scenario() -> None:
        controller, token_file = Controller(), tmp_path / "token"
        controller.wanted_token = "new"
        token_file.write_text("old")
        credentials = credentials_of(authority, "job", token_file=token_file)
        async with controller.serving(authority) as address, Client(address, credentials=credentials) as client:
            client.register_job(GPT)
            assert not await client.acknowledged("gpt", PATIENCE_S)
            refusal = client.refusal("gpt")
            assert refusal is not None
            assert (refusal.reason, str(refusal)) == (RefusalReason.UNAUTHENTICATED, "token: expired")
            token_file.write_text("new")
            await until(lambda: client.refusal("gpt") is None)
            assert await client.acknowledged("gpt", PATIENCE_S)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_calls_of_tools_carry_the_credentials_of_the_environment(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = authority.issue("tool")
    for name, value in {"CA": authority.ca, "CERTIFICATE": certificate, "KEY": key, "TOKEN": "secret"}.items():
        monkeypatch.setenv(f"TRAINYARD_{name}", str(value))

    async def scenario() -> None:
        controller = Controller()
        controller.wanted_token = "another"
        async with controller.serving(authority) as address, Connection(address) as connection:
            with pytest.raises(RefusedError, match="token: expired"):
                await connection.register_job(GPT)
            assert (controller.callers, controller.tokens) == (["tool"], ["Bearer secret"])

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"ca": Path("a"), "certificate": Path("b")}, "key: missing, though certificate is given"),
        ({"ca": Path("a"), "key": Path("b")}, "certificate: missing, though key is given"),
        ({"certificate": Path("a"), "key": Path("b")}, "ca: missing, though certificate is given"),
        ({"token": "a", "token_file": Path("b")}, "token: token_file is given too"),
        ({"token": "two words"}, "token: expected a token of printable ASCII"),
        ({"token": ""}, "token: expected a token of printable ASCII"),
        ({"token": "grüße"}, "token: expected a token of printable ASCII"),
        ({"ca": "a"}, "ca: expected a Path, got 'a'"),
    ],
)
def test_what_does_not_go_together_is_refused(fields: dict[str, Path | str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        Credentials(**fields)
    assert "two words" not in str(refused.value)


def test_a_token_is_neither_shown_nor_sent_in_plain_text_beyond_this_machine() -> None:
    credentials = Credentials(token="secret")
    assert "secret" not in repr(credentials)
    for address in ("controller:4790", "10.0.0.1:4790", "[2001:db8::1]:4790", "127.0.0.1.example:4790"):
        with pytest.raises(ValueError, match=r"ca: missing; a token must not travel in plain text"):
            Client(address, credentials=credentials)
    for address in ("127.0.0.1:4790", "localhost:4790", "[::1]:4790", "127.1.2.3:1", "unix:/run/socket"):
        credentials.channel(address).close()
    assert credentials.metadata() == (("authorization", "Bearer secret"),)


def test_a_unix_socket_is_not_asked_for_a_certificate(authority: Authority) -> None:
    with pytest.raises(ValueError, match=f"ca: {authority.ca} is given, but unix:/run/socket has no TLS"):
        Client(["127.0.0.1:4790", "unix:/run/socket"], credentials=Credentials(ca=authority.ca))


def test_a_file_that_cannot_be_used_is_named(authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.issue("job")
    other_key = authority.issue("other")[1]
    noise = tmp_path / "noise"
    noise.write_text("two words")
    for credentials, named in (
        (Credentials(ca=tmp_path / "none"), tmp_path / "none"),
        (Credentials(ca=tmp_path), tmp_path),
        (Credentials(ca=noise), noise),
        (Credentials(ca=Path("/dev/zero")), Path("/dev/zero")),
        (Credentials(ca=authority.ca, certificate=certificate, key=other_key), certificate),
        (Credentials(ca=authority.ca, certificate=tmp_path / "gone", key=key), tmp_path / "gone"),
        (Credentials(token_file=tmp_path / "gone"), tmp_path / "gone"),
        (Credentials(token_file=noise), noise),
    ):
        for make in (Client, BlockingClient, Connection):
            with pytest.raises(ValueError, match=str(named)):
                make("127.0.0.1:4790", credentials=credentials)


def test_what_is_given_replaces_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CA", "CERTIFICATE", "KEY", "TOKEN", "TOKEN_FILE"):
        monkeypatch.delenv(f"TRAINYARD_{name}", raising=False)
    assert Credentials.from_environment() == Credentials()
    monkeypatch.setenv("TRAINYARD_CA", "ca.pem")
    monkeypatch.setenv("TRAINYARD_TOKEN", "secret")
    monkeypatch.setenv("TRAINYARD_KEY", "")
    assert Credentials.from_environment() == Credentials(ca=Path("ca.pem"), token="secret")
    given = Credentials.from_environment(ca=Path("other.pem"), token_file=Path("token"))
    assert given == Credentials(ca=Path("other.pem"), token_file=Path("token"))
